"""What the command line and the job agree on: spec, events, result, errors, secret references."""
