"""Engines of databases: one package for each."""
