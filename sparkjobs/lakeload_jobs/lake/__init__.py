"""What talks to AWS without Spark: clients, conditional writes, the commit log."""
