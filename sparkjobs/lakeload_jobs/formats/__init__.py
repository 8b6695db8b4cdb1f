"""Table formats of the job: one package for each."""
