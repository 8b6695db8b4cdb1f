"""The sixth layer: one command loads what is new in hundreds of rounds. See ../README.md."""
