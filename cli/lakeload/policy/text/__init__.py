"""Building blocks of policies and recipes as text."""
