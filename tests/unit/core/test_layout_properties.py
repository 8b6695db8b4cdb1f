"""What holds for every key, whatever the names it is made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.layout import (
    MAX_KEY_BYTES,
    TableLocation,
    data_key,
    overlaps,
    partition_path,
    prefix_problem,
    probe_path,
)
from lakeload_jobs.core.names import normalize, schema_name, target_name_problem

PREFIXES = st.sampled_from(["", "p", "data/lake", "größe"])
JOB_IDS = st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True)
INSTANTS = st.datetimes(datetime(2000, 1, 1), timezones=st.just(UTC))
STRATEGIES = st.sampled_from(["NONE", "DAY", "HOUR", "SYNC_ID"])


@st.composite
def locations(draw: st.DrawFn) -> TableLocation:
    """A table whose names come from anything a source could send."""
    schema = schema_name(
        glue_prefix=None,
        destination_prefix=draw(st.text(max_size=10)),
        source_schema=draw(st.text(max_size=10)),
    )
    table = normalize(draw(st.text(max_size=300)))
    assume(target_name_problem(schema, table) is None)
    return TableLocation(draw(PREFIXES), schema, table)


@given(locations(), STRATEGIES, INSTANTS, JOB_IDS)
def test_a_data_key_never_leaves_its_prefix(
    location: TableLocation, strategy: PartitionStrategy, synced: datetime, job_id: str
) -> None:
    key = data_key(location, partition_path(strategy, synced, job_id), f"part-{job_id}-00000")
    assert key.startswith(location.data_path)
    assert key.startswith(f"{location.prefix}/" if location.prefix else "")
    segments = key.split("/")
    assert not {"", ".", "..", "_lakeload"} & set(segments)
    assert len(key.encode()) <= MAX_KEY_BYTES


@given(locations())
def test_log_and_data_of_a_table_are_apart(location: TableLocation) -> None:
    assert not location.log_path.startswith(location.data_path)
    assert not location.data_path.startswith(location.log_path)
    assert not location.data_path.startswith(probe_path(location.prefix))
    assert "//" not in location.log_path + location.data_path
    assert not location.log_path.startswith("/")


@given(locations(), locations())
def test_two_tables_share_no_path(one: TableLocation, other: TableLocation) -> None:
    assume(one != other)
    assert one.data_path != other.data_path
    assert one.log_path != other.log_path


@given(locations(), st.integers(0, 10**20 - 1))
def test_log_keys_are_read_as_they_were_written(location: TableLocation, number: int) -> None:
    assert location.parse_log_key(location.record_key(number)) == (number, "record")
    assert location.parse_log_key(location.end_key(number)) == (number, "end")
    assert location.parse_log_key(location.clean_key(number)) == (number, "clean")
    assert location.parse_log_key(location.cat_key(number)) == (number, "cat")


@given(st.text())
@example("p/_lakeload/s/t/log/1.json")
@example("p/_lakeload/s/t/log/00000000000000000001.json/")
def test_only_keys_that_would_be_written_are_read(tail: str) -> None:
    location = TableLocation("p", "s", "t")
    for key in (tail, location.log_path + tail):
        parsed = location.parse_log_key(key)
        if parsed is not None:
            writers = {"record": location.record_key, "end": location.end_key}
            writers |= {"clean": location.clean_key, "cat": location.cat_key}
            assert writers[parsed[1]](parsed[0]) == key


@given(st.integers(0, 10**20 - 2), st.integers(0, 10**6))
def test_a_list_after_a_record_begins_with_the_next_number(number: int, step: int) -> None:
    location = TableLocation("p", "s", "t")
    later = min(number + 1 + step, 10**20 - 1)
    after = location.record_key(number)
    assert location.end_key(number) < after
    assert location.cat_key(number) < after
    assert location.clean_key(number) < after
    assert min(location.cat_key(later), location.clean_key(later)) > after
    assert location.checkpoint_key > location.record_key(later)


@pytest.mark.parametrize("number", [-1, 10**20])
def test_a_number_outside_the_log_has_no_key(number: int) -> None:
    with pytest.raises(ValueError, match="not a number of the log"):
        TableLocation("p", "s", "t").record_key(number)


@pytest.mark.parametrize("name", ["..", "a/b", "", "a\n", "é", "a.b"])
def test_a_location_takes_normalised_names_only(name: str) -> None:
    with pytest.raises(ValueError, match="not a normalised name"):
        TableLocation("p", "s", name)
    if name:
        with pytest.raises(ValueError, match="not a normalised name"):
            TableLocation("p", name, "t")


@given(st.text(max_size=20))
def test_a_location_takes_no_prefix_that_has_a_problem(prefix: str) -> None:
    if prefix_problem(prefix) is None:
        assert TableLocation(prefix, "s", "t").data_path.endswith("s/t/")
    else:
        with pytest.raises(InvalidInput):
            TableLocation(prefix, "s", "t")


@given(INSTANTS, st.integers(-14, 14))
def test_partitions_are_in_utc_whatever_zone_the_instant_has(synced: datetime, hours: int) -> None:
    elsewhere = synced.astimezone(timezone(timedelta(hours=hours)))
    assert partition_path("HOUR", elsewhere, "j") == partition_path("HOUR", synced, "j")


def test_a_key_that_s3_would_refuse_is_refused_before() -> None:
    location = TableLocation("p" * 400, "s" * 255, "t" * 255)
    with pytest.raises(InvalidInput, match=r"has 1\d\d\d bytes and S3 allows 1024"):
        data_key(location, "2024/01/15/10", "x" * 120)


def test_tables_inside_each_other_are_found() -> None:
    outer, inner = TableLocation("p", "", "a"), TableLocation("p", "a", "b")
    apart = [
        TableLocation("p", "a_b", "c"),
        TableLocation("p", "", "b"),
        TableLocation("", "", "a"),
    ]
    assert overlaps([inner, *apart, outer]) == [(outer, inner)]


def test_probe_keys_are_beside_the_logs() -> None:
    assert probe_path("p") == "p/_lakeload/probe/"
    assert probe_path("") == "_lakeload/probe/"
