"""Data to terminal and JSON; the only printing."""
