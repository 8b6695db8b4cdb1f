"""Files that paths name, local and in S3: listing and opening them, for all types of sources."""
