"""Questions and files of `init`; pure."""
