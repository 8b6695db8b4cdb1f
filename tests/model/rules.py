"""The safeties of the protocol. Each can be switched off, and then rows are lost or doubled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """All on: the protocol as it is built (docs/protocol-parquet.md)."""

    conditional_record: bool = True
    """The record PUT carries If-None-Match."""
    conditional_completion: bool = True
    """So does CompleteMultipartUpload."""
    job_check_at_open: bool = True
    """A job that the log has is not loaded again."""
    job_check_while_passing: bool = True
    """The same is asked of every record that overtakes us."""
    ours_by_attempt: bool = True
    """A record or object is ours when it has our attempt, not when it has our job id."""
    same_put_again: bool = True
    """No answer to the record PUT: only the same PUT again tells."""
    record_before_completion: bool = True
    """Nothing is completed before the record is there."""
    rejects_in_record: bool = True
    """The record names the uploads of the side table, which is each job's last file, as well."""
    publish_from_record: bool = True
    """What is published are the uploads that the record names."""
    look_after_no_such_upload: bool = True
    """Whether an object is there is asked after the upload was found gone."""
    wait_for_late_completion: bool = True
    """A loss is believed when no completion can be running any more."""
    clean_after_void: bool = True
    """A void record's uploads are aborted and its objects deleted."""
    fence_before_abort: bool = True
    """Old uploads are aborted behind a fence."""
    success_after_end: bool = True
    """Success is told when `.end` is written, also of another attempt's record."""
    leave_after_record: bool = True
    """An interrupted writer aborts its uploads only before the record PUT was sent."""
    one_writer_of_state: bool = True
    """Two jobs that move the same state do not both land."""
    one_retry: bool = True
    """Two jobs that read the rejected records of one job do not both land."""
    own_state_only: bool = True
    """The state of a pipeline is read from its own records."""
    first_run_check_while_passing: bool = True
    """`table_handling: FAIL` is asked of every record that overtakes us."""
    checkpoint_of_settled: bool = True
    """A checkpoint covers only what is settled."""
    records_kept: bool = True
    """Records are never deleted."""
    catalog_blocks_nothing: bool = True
    """A failing catalog does not stop later loads."""
