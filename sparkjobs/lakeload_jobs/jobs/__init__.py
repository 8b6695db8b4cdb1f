"""One run each, read top to bottom."""
