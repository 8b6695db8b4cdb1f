"""Maintenance without Spark: limits, and the snapshots that loads need."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from lakeload_jobs.contract.errors import CommitConflict, LoadFailed
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput, TableSpec
from lakeload_jobs.formats.iceberg import rewrites
from lakeload_jobs.formats.iceberg.maintenance import kept_snapshots
from lakeload_jobs.formats.iceberg.rewrites import (
    STEPS,
    SparkWork,
    files_within,
    manifests_after,
)
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState, Snapshot, TableFacts

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"


def table(
    days_old: list[float],
    *,
    states: dict[str, int] | None = None,
    branches: dict[str, tuple[int, int]] | None = None,
) -> TableFacts:
    """Return a table whose `main` is snapshots 1, 2, 3… of these ages.

    `branches`: name → (its snapshot, the one it was made from).
    """
    ages = dict(enumerate(days_old, start=1))
    parents = {number: number - 1 if number > 1 else None for number in ages}
    for number, base in (branches or {}).values():
        ages[number], parents[number] = 0, base
    snapshots = {
        number: Snapshot(number, parents[number], _ms(NOW - timedelta(days=age)), {})
        for number, age in ages.items()
    }
    properties = {
        f"lakeload.state.{name}": PipelineState("orders", "job", number, "", {}).to_property()
        for name, number in (states or {}).items()
    }
    refs = {name: number for name, (number, _) in (branches or {}).items()}
    refs["main"] = len(days_old)
    return TableFacts("s3://lake/t", "u", properties, refs, snapshots, {}, frozenset(), (), 2, None)


def _ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


@pytest.mark.parametrize(
    ("sizes", "limit", "files"),
    [
        ([5, 1, 3], 9, 3),
        ([5, 1, 3], 8, 2),  # any two of them are no more than 5 + 3
        ([5, 1, 3], 7, 1),
        ([5, 1, 3], 4, 0),
        ([], 4, 0),
    ],
)
def test_compaction_limit_holds_for_any_chosen_files(
    sizes: list[int], limit: int, files: int
) -> None:
    assert files_within(sizes, limit) == files


def test_manifests_of_a_kind_are_rewritten_into_whole_ones() -> None:
    assert [manifests_after(sizes, 8) for sizes in ([], [1], [4, 4], [4, 4, 1])] == [0, 1, 1, 2]


def test_expiry_keeps_the_snapshots_to_the_latest_load_of_each_pipeline() -> None:
    facts = table([20, 15, 10, 8, 2], states={"shop": 4, "web": 3})
    assert kept_snapshots(facts, "main", NOW) == {3, 4, 5}


def test_expiry_keeps_no_snapshot_of_an_idle_pipeline() -> None:
    facts = table([90, 40, 10, 2], states={"old": 2, "shop": 4})
    assert kept_snapshots(facts, "main", NOW) == {4}
    assert kept_snapshots(table([90, 40]), "main", NOW) == frozenset()


def test_a_running_load_keeps_the_snapshot_it_began_with() -> None:
    branch = staging_branch(NOW - timedelta(hours=1), ATTEMPT)
    facts = table([20, 15, 10, 8], branches={branch: (9, 2)})
    assert kept_snapshots(facts, "main", NOW) == {2, 3, 4}
    mine = table([20, 15, 10, 8], branches={"somebodys": (9, 2)})
    assert kept_snapshots(mine, "main", NOW) == frozenset()


def test_a_state_that_was_rolled_back_or_expired_keeps_nothing() -> None:
    rolled_back = table([20, 8], states={"shop": 7}, branches={"other": (7, 1)})
    assert kept_snapshots(rolled_back, "main", NOW) == frozenset()
    assert kept_snapshots(table([20, 8], states={"shop": 99}), "main", NOW) == frozenset()


class Answer(Py4JJavaError):  # type: ignore[misc]
    """An exception of Java without a JVM."""

    def __init__(self, name: str) -> None:
        Exception.__init__(self, name)
        java = SimpleNamespace(getSimpleName=lambda: name)
        self.java_exception = SimpleNamespace(
            getClass=lambda: java, getMessage=lambda: name, getCause=lambda: None
        )

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass
class JavaTable:
    """A table of Java's, which a load changes when a compaction commits."""

    losses: int = 1
    """How often."""
    gone: bool = False
    """Whether it is dropped."""
    sizes: tuple[int, ...] = (10, 10, 10)
    """Those of the files that are worth a compaction."""
    tries: list[dict[str, str]] = field(default_factory=list)
    """The options of each rewrite."""

    def refresh(self) -> None:
        """Read it."""
        if self.gone:
            raise Answer("NoSuchTableException")

    def snapshot(self, _: str) -> int:
        """Return the head of a branch."""
        return 1

    def currentSnapshot(self) -> int:
        """Return the head of main."""
        return 1

    def rewrite(self, _: SparkWork, __: object, options: dict[str, str]) -> Any:
        """Rewrite two files of it."""
        self.tries.append(options)
        if len(self.tries) <= self.losses:
            self.sizes = (10, 10, 20, 20)
            raise Answer("CommitFailedException")
        return SimpleNamespace(
            rewrittenDataFilesCount=lambda: 2,
            addedDataFilesCount=lambda: 1,
            removedDeleteFilesCount=lambda: 0,
            rewrittenBytesCount=lambda: 20,
        )


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> JavaTable:
    """The table, as the steps load it."""
    found = JavaTable()
    monkeypatch.setattr(rewrites, "load", lambda *_: found)
    monkeypatch.setattr(rewrites, "_filter", lambda _: None)
    monkeypatch.setattr(rewrites, "_plan", lambda *_: [found.sizes])
    monkeypatch.setattr(rewrites, "_sizes", lambda groups: groups[0])
    monkeypatch.setattr(rewrites, "_rewrite", found.rewrite)
    return found


def take(step: Any, max_bytes: int | None = None) -> Any:
    """Take one step."""
    destination = DestinationSpec("lake", "eu", table_format="ICEBERG")
    tables = cast("Any", SimpleNamespace(destination=destination))
    catalog = cast("Any", SimpleNamespace(open_in=lambda *_: None))
    of = TableSpec("orders", "db", "orders", FilesInput("CSV", ("/a.csv",), {}), "f00")
    spec = MaintainSpec((step,), apply=True, max_bytes=max_bytes)
    return STEPS[step](SparkWork(tables, of, spec, {}, cast("Any", None), catalog))


def test_limit_of_a_compaction_holds_for_the_files_that_a_retry_finds(java: JavaTable) -> None:
    did = take("compact", max_bytes=25)
    # Two of 20 bytes would be 40: after the conflict no two files are within the limit.
    assert (did.status, did.notes) == (
        "NOTHING_TO_DO",
        ("no two files together are within `--max-bytes`",),
    )
    assert java.tries == [{"max-files-to-rewrite": "2"}]


def test_compaction_that_always_conflicts_says_how_to_rewrite_less(java: JavaTable) -> None:
    java.losses = rewrites.TRIES
    with pytest.raises(CommitConflict) as caught:
        take("compact")
    assert (caught.value.hint or "").endswith("with `--where` or `--max-bytes`")
    assert len(java.tries) == rewrites.TRIES


@pytest.mark.parametrize("step", ["compact", "deletes", "manifests"])
def test_step_of_a_table_that_is_dropped_meanwhile_says_so(step: str, java: JavaTable) -> None:
    java.gone = True
    with pytest.raises(LoadFailed, match="was dropped during its maintenance"):
        take(step)
