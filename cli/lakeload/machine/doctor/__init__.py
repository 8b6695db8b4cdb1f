"""Checks of this machine, each with the command that fixes a finding."""
