"""The command line: YAML in, screen and exit code out."""
