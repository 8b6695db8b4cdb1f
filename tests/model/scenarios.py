"""Who is set against whom, within bounds that are searched to the end in seconds."""

from __future__ import annotations

from tests.model.world import Process, Scenario


def _writer(
    name: str,
    job: str,
    pipeline: str = "p",
    *,
    incremental: bool = False,
    fail: bool = False,
    retries: str = "",
) -> Process:
    return Process("writer", name, job, pipeline, incremental, fail, retries=retries)


_RECOVER = Process("recover", "R")
_CLEANER = Process("cleaner", "C")
_COMPACTOR = Process("compactor", "K")

SCENARIOS: dict[str, Scenario] = {
    "two jobs and a recover": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _RECOVER), files=2, kills=2
    ),
    "one job in three attempts": Scenario(
        (_writer("A", "a"), _writer("A'", "a"), _writer("A''", "a")), kills=2
    ),
    "one job in two attempts": Scenario(
        (_writer("A", "a"), _writer("A'", "a"), _RECOVER), files=2, kills=2
    ),
    "one job in two attempts, and uploads are lost": Scenario(
        (_writer("A", "a"), _writer("A'", "a"), _RECOVER), kills=2, lost=2, lifecycle=2
    ),
    "a job that loses uploads": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _RECOVER), files=2, lifecycle=2, lost=0
    ),
    "a person voids what is only partially published": Scenario(
        (_writer("A", "a"), _RECOVER, Process("operator", "O")), files=2, lifecycle=1, kills=2
    ),
    "a person accepts what is only partially published": Scenario(
        (_writer("A", "a"), _RECOVER, Process("operator", "O", decision="partial")),
        files=2,
        lifecycle=1,
        kills=2,
    ),
    "a void job's id comes again": Scenario(
        (_writer("A", "a"), _writer("A'", "a"), Process("operator", "O")), files=2, lifecycle=1
    ),
    "incremental runs at once": Scenario(
        (
            _writer("I", "a", incremental=True),
            _writer("J", "b", incremental=True),
            _writer("K", "c", incremental=True),
        ),
        source_rows=2,
        kills=0,
        lost=0,
    ),
    "incremental runs of two pipelines": Scenario(
        (
            _writer("I", "a", incremental=True),
            _writer("J", "b", "q", incremental=True),
            _writer("K", "c", incremental=True),
        ),
        source_rows=2,
        kills=0,
        lost=0,
    ),
    "incremental runs that lose uploads": Scenario(
        (_writer("I", "a", incremental=True), _writer("J", "b", incremental=True), _RECOVER),
        source_rows=2,
        lifecycle=1,
        lost=0,
    ),
    "two retries of rejected records": Scenario(
        (_writer("A", "a", retries="r"), _writer("B", "b", retries="r"), _RECOVER), lifecycle=1
    ),
    "two first runs": Scenario(
        (_writer("A", "a", fail=True), _writer("B", "b", "q", fail=True), _RECOVER),
        lifecycle=1,
    ),
    "one id in two pipelines": Scenario((_writer("A", "a"), _writer("B", "a", "q"), _RECOVER)),
    "a stranger's object": Scenario((_writer("A", "a"), _RECOVER), files=2, strangers=1, kills=2),
    "a record PUT that arrives late": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _RECOVER), late_puts=True, kills=1, lost=2
    ),
    "completions that take long": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _RECOVER), slow_completions=True, kills=1
    ),
    "Ctrl-C": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _RECOVER), files=2, interrupts=True, kills=0
    ),
    "a clean-up against slow writers": Scenario(
        (_writer("A", "a"), _writer("B", "b"), _CLEANER, _RECOVER), lost=0
    ),
    "two clean-ups": Scenario(
        (_writer("A", "a"), _CLEANER, Process("cleaner", "D"), _RECOVER), kills=2, lost=2
    ),
    "checkpoints": Scenario((_writer("A", "a"), _writer("B", "b"), _COMPACTOR, _RECOVER), lost=0),
    "checkpoints and one job in two attempts": Scenario(
        (_writer("A", "a"), _writer("A'", "a"), _COMPACTOR, Process("compactor", "L")),
        lifecycle=1,
        lost=0,
    ),
    "a catalog": Scenario((_writer("A", "a"), _writer("B", "b"), _RECOVER), glue=True),
    "a catalog that is down": Scenario(
        (_writer("A", "a"), _writer("B", "b")), glue=True, outages=1
    ),
}

WITHOUT: dict[str, tuple[str, str]] = {
    "conditional_record": ("two jobs and a recover", "LOST"),
    "conditional_completion": ("a stranger's object", "OVERWRITTEN"),
    "job_check_at_open": ("one job in two attempts", "TWICE"),
    "job_check_while_passing": ("one job in two attempts", "TWICE"),
    "ours_by_attempt": ("one job in two attempts", "UNCOMMITTED"),
    "same_put_again": ("a record PUT that arrives late", "LIE"),
    "record_before_completion": ("two jobs and a recover", "UNCOMMITTED"),
    "rejects_in_record": ("two jobs and a recover", "UNPUBLISHED"),
    "publish_from_record": ("one job in two attempts", "UNCOMMITTED"),
    "look_after_no_such_upload": ("two jobs and a recover", "NEEDLESS VOID"),
    "wait_for_late_completion": ("completions that take long", "VOID VISIBLE"),
    "clean_after_void": ("a person voids what is only partially published", "VOID VISIBLE"),
    "fence_before_abort": ("a clean-up against slow writers", "NEEDLESS VOID"),
    "success_after_end": ("one job in two attempts, and uploads are lost", "LIE"),
    "leave_after_record": ("Ctrl-C", "NEEDLESS VOID"),
    "one_writer_of_state": ("incremental runs at once", "REPEATED"),
    "one_retry": ("two retries of rejected records", "AGAIN"),
    "own_state_only": ("incremental runs of two pipelines", "SKIPPED"),
    "first_run_check_while_passing": ("two first runs", "FIRST RUN"),
    "checkpoint_of_settled": ("checkpoints", "UNPUBLISHED"),
    "records_kept": ("checkpoints and one job in two attempts", "TWICE"),
    "catalog_blocks_nothing": ("a catalog that is down", "STUCK"),
}
"""Each rule: in which scenario its absence shows, and as what."""
