"""Configuration files: the destination and the pipeline, checked and resolved."""
