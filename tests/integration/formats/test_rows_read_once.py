"""Rows that are not repeatable: none is lost, none comes twice, and the state is theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import cloudpickle

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, TableSpec
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.formats.spool import refuse_second_attempt
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.plan import look
from lakeload_jobs.sources import registry
from tests.integration.formats import stream
from tests.integration.formats.stream import StreamInput, connect_stream, reads
from tests.integration.formats.worlds import IcebergWorld, World, load

only_iceberg = pytest.mark.parametrize("world", ["iceberg"], indirect=True)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The source, known to loads of this test alone; Spark's workers cannot import it."""
    monkeypatch.setitem(registry.SOURCES, StreamInput, connect_stream)
    cloudpickle.register_pickle_by_value(stream)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(stream)  # type: ignore[no-untyped-call]


@pytest.fixture
def tapes(tmp_path: Path) -> Path:
    folder = tmp_path / "tapes"
    folder.mkdir()
    return folder


def table(world: World, tapes: Path, **changes: Any) -> TableSpec:
    given = cast("FilesInput", StreamInput(str(tapes)))
    if isinstance(world, IcebergWorld):
        return world.table(input=given, **changes)
    return replace(world.table("none", **changes), input=given)


def check(world: World) -> Counter[int]:
    """Check that every number of each tape is there once, up to the state; return the counts."""
    rows = world.rows()
    numbers: dict[int, list[int]] = {0: [], 1: []}
    for row in rows:
        numbers[row["tape"]].append(row["number"])
    state = world.state()
    for tape, found in numbers.items():
        assert sorted(found) == list(range(state[tape]))
    return Counter({tape: len(found) for tape, found in numbers.items()})


def test_load_continues_from_the_committed_state(world: World, tapes: Path) -> None:
    first = load(world, table(world, tapes))
    assert first.error is None
    assert (first.status, first.index, first.reader) == ("LOADED", "sparse", "direct")
    assert first.writer == "direct"
    assert (first.rows, reads(tapes)) == (600, [1, 1])
    bad = "6 values or records could not be read and became null (`on_bad_value`)"
    assert first.warnings == (bad,)
    second = load(world, table(world, tapes))
    assert (second.status, second.rows, reads(tapes)) == ("LOADED", 800, [2, 2])
    assert check(world) == {0: 700, 1: 700}
    indexes = [row["_supa_index"] for row in world.rows() if row["number"] < 300]
    # Gaps between the parts, none within: from 1, and from 1 beyond 2**33.
    assert sorted(indexes) == [base + n for base in (1, (1 << 33) + 1) for n in range(300)]


def test_killed_reading_task_fails_only_its_load(world: World, tapes: Path) -> None:
    load(world, table(world, tapes))
    before = check(world)
    (tapes / "deadly").touch()
    killed = load(world, table(world, tapes))
    assert killed.status == "FAILED"
    assert killed.error is not None
    assert killed.error.retryable
    assert not (tapes / "deadly").exists()
    assert check(world) == before
    assert world.left() == []
    after = load(world, table(world, tapes))
    assert after.status == "LOADED"
    assert sum(check(world).values()) == sum(before.values()) + after.rows


def test_a_filter_and_a_limit_are_applied_to_what_was_read(world: World, tapes: Path) -> None:
    result = load(world, table(world, tapes, where="number % 2 = 0"))
    assert (result.status, result.rows, reads(tapes)) == ("LOADED", 300, [1, 1])
    assert world.state() == [300, 300]


@only_iceberg  # A Parquet load that is overtaken takes the next number, with the same files.
def test_conflict_is_retried_with_the_spooled_rows(world: World, tapes: Path) -> None:
    load(world, table(world, tapes))
    before = check(world)
    world.before_commit(lambda: _somebody_appends(world))
    replaced = load(world, table(world, tapes, mode="OVERWRITE"))
    # It ran again for the conflict, and read nothing again.
    assert (replaced.status, reads(tapes)) == ("LOADED", [2, 2])
    state = world.state()
    numbers = sorted((row["tape"], row["number"]) for row in world.rows())
    assert numbers == [(tape, n) for tape in (0, 1) for n in range(before[tape], state[tape])]
    assert replaced.rows == len(numbers)
    assert world.left() == []


def test_rows_of_an_outdated_state_are_not_committed(world: World, tapes: Path) -> None:
    load(world, table(world, tapes))
    world.before_commit(lambda: load(world, table(world, tapes)))
    slower = load(world, table(world, tapes))
    assert slower.status == "FAILED"
    assert slower.error is not None
    assert slower.error.retryable
    assert reads(tapes) == [3, 3]
    check(world)
    assert load(world, table(world, tapes)).status == "LOADED"
    check(world)


@only_iceberg  # Parquet tables have no UPSERT.
def test_rows_read_once_are_merged_once(world: World, tapes: Path) -> None:
    for _ in range(2):
        merged = load(world, table(world, tapes, mode="UPSERT", primary_key=("tape", "number")))
        assert merged.error is None
        assert merged.index == "sparse"
    assert check(world) == {0: 700, 1: 700}


def test_plan_with_rejected_columns_reads_no_rows(world: World, tapes: Path) -> None:
    load(world, table(world, tapes, columns=ColumnsSpec(exclude=("number",))))
    spec = world.spec(table(world, tapes), schema_changes="FAIL")
    aws = AwsSession(spec.destination)
    with (
        closing(FORMATS[spec.destination.table_format].connect(world.spark, spec, aws)) as session,
        EventLog(spec.events_path) as events,
    ):
        (found,) = look(session, registry.Sources(spec, aws), spec, events)
    assert reads(tapes) == [1, 1]
    assert found.error is not None
    assert "`number`" in found.error.message


def test_task_retried_by_spark_reads_no_rows_twice() -> None:
    class Second:
        def attemptNumber(self) -> int:
            return 1

    with pytest.raises(LoadFailed, match="cannot be read again"):
        refuse_second_attempt(cast("Any", Second()))


def _somebody_appends(world: World) -> None:
    """A stranger appends a row, so that what replaces all rows has to begin anew."""
    schema = world.table().schema
    frame = world.spark.table(f"lake.`{schema}`.orders").limit(1)
    frame.writeTo(f"lake.`{schema}`.orders").append()
