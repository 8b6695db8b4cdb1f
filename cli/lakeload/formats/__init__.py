"""Table formats: what a load would find and do, and the operations on tables after it."""
