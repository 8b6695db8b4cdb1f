"""Files read through Spark's readers."""
