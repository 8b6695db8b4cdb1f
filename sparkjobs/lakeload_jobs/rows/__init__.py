"""Rows in Arrow: tracking columns, casts, conditions and rejects; and in Spark's SQL what it alone
computes."""
