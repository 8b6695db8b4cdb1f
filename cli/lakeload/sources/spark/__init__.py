"""SPARK: one of Spark's own readers, whose meaning is Spark's."""
