"""What `init` asks and writes; pure."""
