"""Pure rules of Iceberg loads, on facts about a table."""
