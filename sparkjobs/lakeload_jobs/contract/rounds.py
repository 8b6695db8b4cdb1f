"""Lines of the pipe through which a driver gets one job after another."""

DRAIN = "drain"
"""Begin no further table."""
FORGET = "forget"
"""Forget the connection to the destination. Every other line is the path of a job's spec."""
