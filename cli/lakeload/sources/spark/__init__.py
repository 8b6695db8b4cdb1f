"""SPARK source: any of Spark's own readers."""
