"""JSON files: their layout, and what they hold."""
