"""Java, Spark and memory of this machine."""
