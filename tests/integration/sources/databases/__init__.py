"""Tables of databases, from a real server."""
