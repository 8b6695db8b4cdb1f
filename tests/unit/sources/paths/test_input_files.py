"""Which files of a folder are read, and what Spark would drop without a word is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.sources.paths.file_state import (
    FileState,
    ListingFilter,
    choose,
    hidden,
    partition_base,
)


def files(*paths: str, root: str = "/d") -> list[FileState]:
    return [FileState(path, 1, 0, root=root) for path in paths]


def chosen(found: list[FileState], **options: str) -> list[str]:
    return [file.path for file in choose(found, options)]


def test_folder_without_partitions_reads_direct_files_only() -> None:
    found = files("/d/b.csv", "/d/a.csv", "/d/below/c.csv")

    assert chosen(found) == ["/d/a.csv", "/d/b.csv"]
    assert chosen(found, recursiveFileLookup="TRUE") == ["/d/a.csv", "/d/b.csv", "/d/below/c.csv"]


def test_with_partition_folders_all_files_below_are_read() -> None:
    found = files("/d/x=1/a.csv", "/d/x=2/y=3/b.csv")

    assert chosen(found) == ["/d/x=1/a.csv", "/d/x=2/y=3/b.csv"]
    assert partition_base(found, {}) == "/d"
    assert partition_base(found, {"basePath": "/"}) is None
    assert partition_base(found, {"recursiveFileLookup": "true"}) is None
    assert partition_base(files("/d/a.csv", root=""), {}) is None


@pytest.mark.parametrize(
    "other",
    [
        *files("/d/top.csv"),
        *files("/d/x=9.csv"),
        *files("/e/x=1/a.csv", root="/e"),
        *files("/e/a.csv", root=""),
    ],
    ids=lambda file: file.path,
)
def test_files_that_spark_would_drop_beside_partition_folders_are_refused(
    other: FileState,
) -> None:
    with pytest.raises(LoadFailed, match="is outside of them") as caught:
        partition_base([*files("/d/x=1/a.csv"), other], {})

    assert other.path in caught.value.message


def test_a_file_that_two_paths_name_is_read_once() -> None:
    assert chosen([*files("/d/a.csv"), *files("/d/a.csv", root="")]) == ["/d/a.csv"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_SUCCESS", True),
        (".x", True),
        ("_k=1", False),
        ("a._COPYING_", True),
        ("_metadata", True),
        ("a_b.c", False),
    ],
)
def test_hidden_file_names_are_those_of_spark(name: str, expected: bool) -> None:
    assert hidden(name) is expected


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.csv", "a.csv", "a.csv.gz"),
        ("{a,b}?.csv", "b1.csv", "c1.csv"),
        ("[a-c]x", "bx", "dx"),
        ("[^a-c]x", "dx", "ax"),
        ("[!a-c]x", "dx", "ax"),
        ("\\*{x,y\\}}", "*y}", "ay}"),
        ("a.b", "a.b", "axb"),
    ],
)
def test_a_path_glob_filter_is_one_of_hadoop(pattern: str, yes: str, no: str) -> None:
    wanted = ListingFilter.from_options({"pathglobfilter": pattern})

    assert wanted.accepts(yes, 0)
    assert not wanted.accepts(no, 0)


@pytest.mark.parametrize("pattern", ["[", "[a", "{a", "a\\"])
def test_a_filter_that_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is not a pattern"):
        ListingFilter.from_options({"pathglobfilter": pattern})


def test_bounds_of_modification_times_are_exclusive_and_utc_unless_a_zone_is_given() -> None:
    at = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * 1_000_000_000
    utc = ListingFilter.from_options({"modifiedafter": "2026-01-02T03:04:05"})
    berlin = ListingFilter.from_options(
        {"modifiedbefore": "2026-01-02 04:04:06", "timezone": "Europe/Berlin"}
    )

    assert [utc.accepts("a", at + 1_000_000 * ms) for ms in (-1, 0, 1)] == [False, False, True]
    assert [berlin.accepts("a", at + 1_000_000 * ms) for ms in (999, 1000)] == [True, False]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time"):
        ListingFilter.from_options({"modifiedbefore": text})
