"""FILES: files of this machine or in S3, read by Spark."""
