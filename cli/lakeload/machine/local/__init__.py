"""Java, Spark and memory of this machine, and the zip of the job."""
