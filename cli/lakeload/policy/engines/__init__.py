"""Recipes that set up query engines to read the tables."""
