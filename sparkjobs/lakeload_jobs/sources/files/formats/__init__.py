"""Formats of source files: one package each, behind one interface."""
