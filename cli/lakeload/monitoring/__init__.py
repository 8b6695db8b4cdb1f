"""Metrics, history and notifications of loads, for others to see. A failure here fails no load."""
