"""The fourth layer: schemas of databases, changed and loaded again while loads are killed."""
