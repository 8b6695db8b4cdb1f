"""The connection test; one module for each service."""
