"""Glue beside the commit log, without Spark."""
