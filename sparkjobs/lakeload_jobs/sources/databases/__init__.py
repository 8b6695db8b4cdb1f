"""JDBC as a source: tables, views and queries of a database."""
