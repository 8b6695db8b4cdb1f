"""Reports of jobs to other systems. None of them can fail a load, or delay its end for long."""
