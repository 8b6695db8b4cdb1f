"""The embedded AWS and the sample data of `lakeload demo`."""
