"""JDBC source: tables of a database."""
