"""CSV files, dumps of databases with backslash escapes among them."""
