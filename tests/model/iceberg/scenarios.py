"""Who is set against whom, within bounds that are searched to the end in seconds."""

from __future__ import annotations

from tests.model.iceberg.world import Process, Scenario

_A, _B, _C = Process("A", "a"), Process("B", "b"), Process("C", "c")
_A2 = Process("A'", "a")
_I, _J, _K, _L = (Process(name, name.lower(), "incremental") for name in "IJKL")
_R, _S = Process("R", "r", retries="a"), Process("S", "s", retries="a")
_Z = Process("Z", "z0", "empty")
_O, _P = Process("O", "o", "overwrite"), Process("P", "p0", "overwrite")
_M, _N = (Process(f"M{n}", f"m{n}", "merge", version=n) for n in (1, 2))
_FIRST, _OTHERS = Process("A", "a", fail=True), Process("B", "b", pipeline="q")

SCENARIOS: dict[str, Scenario] = {
    "two appends": Scenario((_A, _B), kills=1, lost=1),
    "two appends, REST": Scenario((_A, _B), kills=1, lost=1, rest=True),
    "one job in two attempts": Scenario((_A, _A2), lost=1, kills=1),
    "one job in two attempts beside another": Scenario((_A, _A2, _B), rounds=0),
    "incremental loads": Scenario((_I, _J), source_rows=3, lost=1),
    "incremental loads, REST": Scenario((_I, _J), source_rows=3, lost=1, rest=True),
    "a load without rows": Scenario((_I, _Z), source_rows=3),
    "a load without rows, REST": Scenario((_I, _Z), source_rows=3, rest=True),
    "incremental loads and a rollback": Scenario(
        (_I, _J, _K, _L), history=2, source_rows=3, rollbacks=1, rounds=0
    ),
    "incremental loads and a rollback, REST": Scenario(
        (_I, _J, _K, _A), history=2, source_rows=3, rollbacks=1, rest=True
    ),
    "a rollback and its traces expire": Scenario(
        (_I, _J, _K, _L), history=2, source_rows=3, rollbacks=1, expiries=1, foreign=1, rounds=0
    ),
    "a whole load after a rollback": Scenario(
        (_B, _I, _A, _J), history=2, source_rows=2, rollbacks=1
    ),
    "a job that was rolled back": Scenario((_B, _A, _A2), history=1, rollbacks=1, foreign=1),
    "overwrites and appends": Scenario((_O, _A), foreign=1, kills=1),
    "overwrites and a rollback": Scenario((_A, _O), rollbacks=1, foreign=1),
    "two overwrites, REST": Scenario((_O, _P), foreign=1, lost=1, rest=True),
    "merges of two versions": Scenario((_M, _N), lost=1, kills=1),
    "merges of two versions, REST": Scenario((_M, _N), lost=1, rest=True),
    "merges and a rollback": Scenario((_M, _N), rollbacks=1, delays=1),
    "a short list of jobs": Scenario((_A, _B, _A2), remembered=1, expiries=1, rounds=0),
    "a short list of jobs, and the id again": Scenario(
        (_A, _B, _A2, _C), history=2, remembered=1, expiries=1, lost=1
    ),
    "branches are dropped": Scenario((_A, _B), drops=1, expiries=1, foreign=1, rounds=0),
    "branches are dropped, REST": Scenario(
        (_A, _B), drops=1, expiries=1, foreign=1, orphans=1, rounds=0, rest=True
    ),
    "late commits": Scenario((_A, _B), delays=1, lost=1),
    "late commits, REST": Scenario((_A, _B), delays=1, lost=1, drops=1, rest=True),
    "everything at once": Scenario(
        (_I, _J),
        history=1,
        source_rows=2,
        lost=1,
        delays=1,
        rollbacks=1,
        foreign=1,
        expiries=1,
        drops=1,
        orphans=1,
        kills=1,
    ),
    "everything at once, REST": Scenario(
        (_A, _O),
        history=1,
        lost=1,
        delays=1,
        rollbacks=1,
        foreign=1,
        expiries=1,
        drops=1,
        orphans=1,
        kills=1,
        rest=True,
    ),
    "orphans are removed": Scenario((_A, _B), orphans=1, drops=1),
    "rejected records": Scenario((_A, _B), rejects=True, kills=1, rounds=0),
    "rejected records, REST": Scenario((_A, _B), rejects=True, lost=1, rest=True, rounds=0),
    "rejected records of one job in two attempts": Scenario(
        (_A, _A2), rejects=True, lost=1, rounds=0
    ),
    "rejected records and dropped branches": Scenario(
        (_A, _B), rejects=True, drops=1, delays=1, rounds=0
    ),
    "rejected records of a load that begins anew": Scenario((_O, _A), rejects=True, foreign=1),
    "two retries of rejected records": Scenario((_A, _R, _S), history=1, kills=1, lost=1),
    "two retries of rejected records, REST": Scenario(
        (_A, _R, _S), history=1, lost=1, delays=1, rest=True
    ),
    "retries, a rollback and expiry": Scenario(
        (_A, _R, _S), history=2, rollbacks=1, expiries=1, foreign=1
    ),
    "retries and a short list of jobs": Scenario(
        (_A, _R, _B, _S), history=3, remembered=3, expiries=1
    ),
    "first loads that are killed": Scenario((_FIRST,), kills=1),
    "two first loads": Scenario((_FIRST, _OTHERS), foreign=1),
    "two first loads under FAIL": Scenario(
        (_FIRST, Process("B", "b", pipeline="q", fail=True)), kills=1
    ),
}

WITHOUT: dict[str, tuple[str, str]] = {
    "compare_and_set": ("two appends", "LOST"),
    "one_writer_of_state": ("incremental loads", "REPEATED"),
    "start_is_ancestor": ("incremental loads and a rollback", "SKIPPED"),
    "exact_base": ("overwrites and a rollback", "RESURRECTED"),
    "late_rows_are_ignored": ("merges of two versions", "OLDER"),
    "job_in_lineage": ("a job that was rolled back", "LIE"),
    "state_in_lineage": ("incremental loads and a rollback", "SKIPPED"),
    "expired_state_asks_the_data": ("a rollback and its traces expire", "SKIPPED"),
    "state_stays_with_its_snapshot": ("a whole load after a rollback", "SKIPPED"),
    "count_of_publishes": ("a short list of jobs", "TWICE"),
    "full_list_asks_the_data": ("a short list of jobs, and the id again", "TWICE"),
    "job_check_at_publish": ("one job in two attempts", "TWICE"),
    "branch_asserted": ("branches are dropped, REST", "CORRUPT"),
    "empty_snapshot": ("a load without rows", "REPEATED"),
    "lost_answers_are_looked_into": ("late commits", "LIE"),
    "orphans_spare_loads": ("orphans are removed", "CORRUPT"),
    "created_by": ("first loads that are killed", "STUCK"),
    "first_run_check_at_publish": ("two first loads", "FIRST RUN"),
    "one_retry": ("two retries of rejected records", "AGAIN"),
    "rejects_before_publish": ("rejected records", "REJECTS"),
    "rejects_are_remembered": ("rejected records", "REJECTS"),
    "rejects_wait_for_the_branch": ("rejected records", "REJECTS"),
}
"""Each rule: in which scenario its absence shows, and as what."""

OF_SPARK = frozenset({"exact_base"})
"""Rules whose absence shows only where Spark commits to the branch: an overwrite that the publish
adds replaces what is there then, whatever it is."""
