"""The lake of this machine, with its real server."""
