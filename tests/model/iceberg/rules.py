"""The safeties of the protocol. Each can be switched off, and then rows are lost or doubled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """All on: the protocol as it is built. I1 to I15 are those of docs/protocol-iceberg.md."""

    compare_and_set: bool = True
    """The catalog compares what it has with what the transaction is based on."""
    one_writer_of_state: bool = True
    """I1: a publish that sets the state finds the one its load started from."""
    start_is_ancestor: bool = True
    """I2: the head that the load started from is still in the branch."""
    exact_base: bool = True
    """I3: an overwrite or MERGE finds the very head that it was staged on."""
    late_rows_are_ignored: bool = True
    """I13: a MERGE leaves a row alone whose cursor is greater than that of its own."""
    job_in_lineage: bool = True
    """I4: a remembered job counts while its snapshot is in the branch."""
    state_in_lineage: bool = True
    """So does the state: after a rollback by hand the load stops."""
    expired_state_asks_the_data: bool = True
    """I5: a state whose snapshot is expired counts while the rows of its job are there."""
    state_stays_with_its_snapshot: bool = True
    """A load that sets no state leaves the state where it belongs."""
    count_of_publishes: bool = True
    """I6: a publish knows when the list of jobs has turned over since its start."""
    full_list_asks_the_data: bool = True
    """I6: a job that a full list does not have may be in all the same."""
    job_check_at_publish: bool = True
    """The job is looked for again in the metadata that the publish is based on."""
    branch_asserted: bool = True
    """I7: a publish asserts its own branch, also where the catalog compares references alone."""
    empty_snapshot: bool = True
    """I8: a load without rows publishes an empty snapshot, not properties alone."""
    lost_answers_are_looked_into: bool = True
    """I9: after a lost answer the own snapshot is looked for first, and nothing is called
    uncommitted unless the branch was there to be dropped."""
    orphans_spare_loads: bool = True
    """I10: no file younger than the oldest staging branch is an orphan."""
    created_by: bool = True
    """I11: the empty table that a killed first run has made is still a first run's."""
    first_run_check_at_publish: bool = True
    """`table_handling: FAIL` is asked again by the publish."""
    rejects_before_publish: bool = True
    """I14: rejected records are in the side table before the rows are published."""
    rejects_are_remembered: bool = True
    """I14: the side table remembers an attempt before it takes its records."""
    one_retry: bool = True
    """I15: rejected records that are read again are asked for by the publish as well."""
    rejects_wait_for_the_branch: bool = True
    """I14: nothing is removed of an attempt whose branch is there: it may yet publish."""
