"""Databases by a JDBC driver: one of the user, or that of an engine built on this package."""
