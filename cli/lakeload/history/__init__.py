"""The job history: what became of each job of a pipeline, one object a day beside the logs."""
