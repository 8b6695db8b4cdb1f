"""Contract of command line and job: spec, events, result, errors, secret references."""
