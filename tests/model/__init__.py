"""The Parquet protocol as an explicit-state model: every order of every step, searched to the end.

`world` is the bucket and who works on it. `actors`, `writer`, `finish` and `upkeep` are the steps,
named as in `lakeload_jobs.lake`. `rules` are the safeties that can be taken away one by one.
`search` finds the shortest way to a state that breaks one of the `invariants`.
"""
