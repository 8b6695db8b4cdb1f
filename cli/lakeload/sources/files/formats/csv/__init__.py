"""CSV files: their dialect, and what they hold."""
