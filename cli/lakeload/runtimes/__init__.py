"""Where Spark runs: one module for each runtime, and `registry`, which knows them all."""
