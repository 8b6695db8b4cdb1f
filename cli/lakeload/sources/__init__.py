"""Source types of the command line: settings, validation and specs."""
