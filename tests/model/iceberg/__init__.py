"""Explicit-state model of the Iceberg protocol (docs/protocol-iceberg.md).

The steps are those of `lakeload_jobs.iceberg`; what they decide is decided by the functions of
`lakeload_jobs.rules` themselves, so that the search goes through the code and not a copy of it.
"""
