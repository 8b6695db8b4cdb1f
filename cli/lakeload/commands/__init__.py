"""One module for each command: read, call, show."""
