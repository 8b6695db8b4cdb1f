"""Readers of text formats: exact, and without Spark."""
