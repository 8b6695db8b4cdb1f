"""The Spark job, and the contract that it shares with the command line."""
