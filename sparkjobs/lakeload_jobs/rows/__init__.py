"""Tracking columns and casts, as Spark and Arrow expressions."""
