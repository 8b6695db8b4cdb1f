"""The rules of the Iceberg commit protocol in one place.

Facts of a table in `iceberg_facts`, its jobs in `iceberg_jobs`, the start of a load in
`iceberg_admission`, its publish in `iceberg_publish`, names of staging branches in
`iceberg_branches`.
"""

from lakeload_jobs.formats.iceberg.rules.admission import (
    JobAnswer,
    JobFound,
    Start,
    check_same_load,
    check_state_rows,
    find_job,
    next_properties,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.branches import (
    left_branches,
    orphans_before,
    parse_staging_branch,
    staging_branch,
)
from lakeload_jobs.formats.iceberg.rules.facts import (
    PipelineState,
    Snapshot,
    TableAttempt,
    TableFacts,
    belongs,
    job_key,
    lineage,
    pipelines_of,
    state_of,
)
from lakeload_jobs.formats.iceberg.rules.publish import (
    Decision,
    Verdict,
    after_drop,
    check_replaceable,
    has_landed,
    may_publish,
    unknown_outcome,
)

__all__ = [
    "Decision",
    "JobAnswer",
    "JobFound",
    "PipelineState",
    "Snapshot",
    "Start",
    "TableAttempt",
    "TableFacts",
    "Verdict",
    "after_drop",
    "belongs",
    "check_replaceable",
    "check_same_load",
    "check_state_rows",
    "find_job",
    "has_landed",
    "job_key",
    "left_branches",
    "lineage",
    "may_publish",
    "next_properties",
    "open_table",
    "orphans_before",
    "parse_staging_branch",
    "pipelines_of",
    "staging_branch",
    "state_of",
    "unknown_outcome",
]
