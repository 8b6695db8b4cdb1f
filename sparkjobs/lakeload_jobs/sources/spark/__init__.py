"""SPARK as a source: one of Spark's own readers."""
