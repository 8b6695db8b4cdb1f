"""Table formats: inspection, plans and operations on tables."""
