"""The Spark job, and the contract that it shares with the command line."""

__version__ = "0.1.0"
"""Of all of lakeload; executors may run from an archive without metadata."""
