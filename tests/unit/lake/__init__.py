"""Queries of the lake of this machine, without its server."""
