"""FILES: listing, selection of new files, and readers."""
