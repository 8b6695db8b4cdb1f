"""Iceberg tables, in the command line: inspection, plan and table operations."""
