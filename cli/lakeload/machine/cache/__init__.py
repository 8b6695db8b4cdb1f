"""The cache folder: atomic files, and removal of what is not used."""
