"""JobSpec to spark-submit to events to outcome."""
