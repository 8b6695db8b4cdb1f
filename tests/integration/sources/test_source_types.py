"""Promises of every type of source, of the command line and of the job alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

from lakeload.machine.jars.pins import pinned
from lakeload.sources.registry import SOURCES, facts_of, source_of
from lakeload.sources.report import SourceReport
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import (
    DestinationSpec,
    JobSpec,
    ReaderChoice,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.base import NO_COLUMNS, Slice
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.sources.registry import SOURCES as JOB_SOURCES
from lakeload_jobs.sources.registry import Sources
from lakeload_jobs.sources.spark_frames import frame_of
from tests.integration.sources.conftest import WORLDS
from tests.integration.sources.worlds import World

LAKE = DestinationSpec("my-data-lake", "us-east-1")
FIRST = Bookmark(None, True, 1, lambda _: ())
ROWS = [(1, "one"), (2, "two"), (3, "three")]


def job_of(table: TableSpec, folder: Path) -> JobSpec:
    result = str(folder / "result.json")
    return JobSpec(1, "shop", "job", "a" * 12, datetime.now(UTC), LAKE, (table,), "", result)


@contextmanager
def taken(table: TableSpec, folder: Path, bookmark: Bookmark) -> Iterator[Slice]:
    """Give what a job would read."""
    spec = job_of(table, folder)
    with closing(Sources(spec, AwsSession(LAKE)).of(table)) as opened:
        yield opened.slice(bookmark)


def loaded(
    spark: SparkSession, table: TableSpec, folder: Path, bookmark: Bookmark = FIRST
) -> tuple[list[tuple[int, str]], Bookmark]:
    """Return the rows that a job would load, and what it would keep."""
    with taken(table, folder, bookmark) as found:
        rows = found.open(spark, NO_COLUMNS)
        values = [(row["id"], row["name"]) for row in frame_of(rows).collect()]
        rows.check_unchanged()
        change = found.change
        evidence = found.noted(())
    if change is None:
        return sorted(values), bookmark
    state = json.loads(json.dumps(change.after))
    kept = (evidence,) if evidence is not None else ()
    return sorted(values), Bookmark(state, False, 2, lambda _: kept)


def reported(table: TableSpec, bookmark: Bookmark | None) -> SourceReport:
    """Return what a plan would be told."""
    readers = SourceReaders(LAKE, AwsSession(LAKE))
    known = bookmark is not None and bookmark.state is not None
    mark = None if bookmark is None else lambda: bookmark
    read = table.input
    return source_of(read).inspect(
        read, readers, RunOptions(), table=table, known=known, bookmark=mark
    )


def test_every_type_of_source_is_here() -> None:
    assert {*WORLDS} == {*SOURCES}
    names = {vars(kind)["type"] for kind in JOB_SOURCES}
    assert names == {*SOURCES, "REJECTED"}


def test_source_spec_is_the_same_for_the_job(source: World) -> None:
    table = source.table(goes_on=False)
    text = json.dumps(to_json(table))

    assert to_json(from_json(TableSpec, json.loads(text))) == json.loads(text)
    assert table.input.incremental is False
    assert not source.secret or source.secret not in text


def test_source_fingerprint_follows_what_is_read(source: World) -> None:
    table = source.table(goes_on=False)

    assert source.table(goes_on=False).fingerprint == table.fingerprint
    assert source.table(goes_on=False, missing=True).fingerprint != table.fingerprint


def test_source_facts_name_what_there_is(source: World) -> None:
    source.add(ROWS)
    read = source.table(goes_on=False).input

    for reader in get_args(ReaderChoice):
        facts = facts_of(read, reader)
        assert {jar.feature for jar in pinned(*facts.jar_sets)} == {*facts.jar_sets}
        assert facts.reader == source.readers[reader]
    assert all(one.namespace and one.name for one in facts_of(read).datasets)
    assert source_of(read).absent(read) == ()
    missing = source.table(goes_on=False, missing=True).input
    assert source_of(missing).absent(missing) == getattr(missing, "paths", ())


def test_document_of_a_source_without_settings_is_no_crash(source: World) -> None:
    kind = SOURCES[source.table(goes_on=False).input.type]
    wrong: list[Any] = [None, [], {}, {"type": kind.name, "url": 7, "options": 7, "format": 7}]

    for nothing in wrong:
        list(kind.findings(nothing, []))
        assert kind.references(nothing) == {}


def test_source_that_is_read_whole_returns_every_row_each_time(
    source: World, spark: SparkSession, tmp_path: Path
) -> None:
    source.add(ROWS)
    table = source.table(goes_on=False)

    for _ in range(2):
        rows, bookmark = loaded(spark, table, tmp_path)
        assert rows == ROWS
        assert bookmark is FIRST


def test_source_that_goes_on_returns_new_rows_alone(
    growing: World, spark: SparkSession, tmp_path: Path
) -> None:
    table = growing.table(goes_on=True)
    growing.add(ROWS)
    first, bookmark = loaded(spark, table, tmp_path)
    with taken(table, tmp_path, bookmark) as again:
        assert again.idle
    growing.add([(4, "four")])
    second, _ = loaded(spark, table, tmp_path, bookmark)

    assert table.input.incremental
    assert first == ROWS
    assert (4, "four") in second
    # Rows with the last value of a cursor are read once more.
    assert not {*ROWS[:2]} & {*second}


def test_report_says_what_the_job_finds(
    growing: World, spark: SparkSession, tmp_path: Path
) -> None:
    table = growing.table(goes_on=True)
    growing.add(ROWS)
    _, bookmark = loaded(spark, table, tmp_path)

    for idle in (True, False):
        report = reported(table, bookmark)
        with taken(table, tmp_path, bookmark) as found:
            assert (report.idle, report.sentence) == (found.idle, found.sentence)
            assert report.warnings == found.warnings
        assert report.idle is idle
        if idle:
            growing.add([(4, "four")])


def test_report_of_a_source_that_is_read_whole_has_nothing_new(source: World) -> None:
    source.add(ROWS)
    report = reported(source.table(goes_on=False), FIRST)

    assert (report.idle, report.sentence, report.position) == (False, None, None)


def test_input_that_is_not_there_is_an_error_of_the_job(
    source: World, spark: SparkSession, tmp_path: Path
) -> None:
    table = source.table(goes_on=False, missing=True)

    with pytest.raises(LakeloadError) as raised, taken(table, tmp_path, FIRST) as found:
        frame_of(found.open(spark, NO_COLUMNS)).collect()
    assert "nowhere" in str(raised.value)


def test_state_of_another_source_is_refused(growing: World, tmp_path: Path) -> None:
    growing.add(ROWS)
    strange = Bookmark({"kind": "STREAM", "offsets": {"orders-0": 7}}, False, 2, lambda _: ())
    table = growing.table(goes_on=True)

    unusable = "the state of this pipeline cannot be used: "
    with pytest.raises(LakeloadError, match=unusable), taken(table, tmp_path, strange):
        pass
    with pytest.raises(LakeloadError, match=unusable):
        reported(table, strange)


def test_type_columns_that_a_source_does_not_have_are_refused(
    source: World, spark: SparkSession, tmp_path: Path
) -> None:
    source.add(ROWS)
    table = source.table(goes_on=False)
    wrong = replace(table, columns=replace(table.columns, types={"idd": "bigint"}))

    with pytest.raises(LakeloadError, match="idd") as raised:
        loaded(spark, wrong, tmp_path)
    assert "`id`" in (raised.value.hint or "")
