"""JSON files, and those with one value on each line."""
