"""Formats of source files as inspection knows them."""
