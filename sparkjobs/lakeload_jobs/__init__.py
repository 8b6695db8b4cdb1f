"""What runs under spark-submit, and what the command line and the job must agree on."""
