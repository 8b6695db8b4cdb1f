"""Types of sources: what a pipeline says of each, checked and resolved."""
