"""Policies as shell commands and Terraform."""
