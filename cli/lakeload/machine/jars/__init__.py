"""The jars Spark needs: pins, download, cache."""
