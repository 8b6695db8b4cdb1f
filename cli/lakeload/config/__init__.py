"""YAML to problems or a frozen model."""
