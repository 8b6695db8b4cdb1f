"""What the peers run: each module is a script of its own, started in its own process."""
