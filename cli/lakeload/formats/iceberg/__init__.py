"""Iceberg tables, as the command line sees them: inspected, planned, looked after."""
