"""Training runs for an AppCDS archive."""
