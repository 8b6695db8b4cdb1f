"""Tests of reports to other systems."""
