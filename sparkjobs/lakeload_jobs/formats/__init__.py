"""Table formats: what a load writes, one package for each format."""
