"""Globs are expanded by lakeload, in one order, and take names as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.file_state import normal_path, partition_base
from lakeload_jobs.sources.files.listing import expand, list_again, list_files, local_files
from lakeload_jobs.sources.files.spark.paths import plain_path, spark_path


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_matches_are_sorted_and_each_is_named_once(tmp_path: Path) -> None:
    files(tmp_path, "b.csv", "a.csv", "c.txt")

    found = expand([f"{tmp_path}/*.csv", f"{tmp_path}/b.csv", f"{tmp_path}/c.txt"])

    assert found == tuple(f"{tmp_path}/{name}" for name in ("a.csv", "b.csv", "c.txt"))


@pytest.mark.parametrize("name", ["a [1].csv", "b*.csv", "c?.csv", "d{1,2}.csv", "e%20#é.csv"])
def test_a_file_of_exactly_that_name_wins_over_the_wildcard(tmp_path: Path, name: str) -> None:
    files(tmp_path, name, "a 1.csv", "bb.csv", "cc.csv")

    assert expand([f"{tmp_path}/{name}"]) == (f"{tmp_path}/{name}",)


@pytest.mark.parametrize(
    "path",
    ["conf/../data/a.csv", "conf/./..//data/*.csv", "*/../data/a.csv", "conf/../data/[a].csv"],
)
def test_a_path_has_one_spelling_and_that_is_sparks(tmp_path: Path, path: str) -> None:
    files(tmp_path, "data/a.csv", "conf/x")

    assert expand([f"{tmp_path}/{path}"]) == (f"{tmp_path}/data/a.csv",)


def test_the_folder_above_may_be_read_and_has_its_own_name(tmp_path: Path) -> None:
    files(tmp_path, "day=1/a.csv")

    (found,) = list_files(FilesInput("CSV", (f"{tmp_path}/day=1/..",), {}))

    assert (found.path, found.root) == (f"{tmp_path}/day=1/a.csv", str(tmp_path))
    assert partition_base([found], {}) == str(tmp_path)


def test_path_with_dots_after_a_link_follows_the_file_system(tmp_path: Path) -> None:
    files(tmp_path, "far/data/a.csv", "far/conf/x", "here/b.csv")
    (tmp_path / "here" / "conf").symlink_to(tmp_path / "far" / "conf")
    (tmp_path / "here" / "link").symlink_to(tmp_path / "far" / "data")

    above, beside = expand([f"{tmp_path}/here/conf/../data/a.csv", f"{tmp_path}/here/link"])

    assert above == f"{tmp_path.resolve()}/far/data/a.csv"
    assert beside == f"{tmp_path}/here/link"


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/", "/"),
        ("//a//b/", "/a/b"),
        ("/a/./b/.", "/a/b"),
        ("/../a/b/../..", "/"),
        ("/a/..b/c..", "/a/..b/c.."),
    ],
)
def test_normalized_path_has_no_redundant_part(path: str, normal: str) -> None:
    assert normal_path(path) == normal


def test_path_for_spark_escapes_every_pattern_character() -> None:
    assert spark_path("/d/a [1]{x}*?.csv") == "file:/d/a \\[1\\]\\{x\\}\\*\\?.csv"


def test_sparks_uris_become_paths_again() -> None:
    assert plain_path("file:///d/a%20%5B1%5D%25%23%3Fé.csv") == "/d/a [1]%#?é.csv"


def test_two_stars_search_folders_below_and_yield_files_only(tmp_path: Path) -> None:
    files(tmp_path, "x.csv", "a/y.csv", "a/b/z.csv")

    found = expand([f"{tmp_path}/**"])

    assert [os.path.relpath(path, tmp_path) for path in found] == ["a/b/z.csv", "a/y.csv", "x.csv"]


def test_a_file_is_not_read_a_second_time_through_its_folder(tmp_path: Path) -> None:
    files(tmp_path, "day/x.csv")

    given = FilesInput("CSV", (f"{tmp_path}/day/x.csv", f"{tmp_path}/day"), {})

    assert [file.path for file in list_files(given)] == [f"{tmp_path}/day/x.csv"]


def test_names_that_spark_hides_are_skipped_by_a_wildcard(tmp_path: Path) -> None:
    files(tmp_path, "_SUCCESS", ".x.csv", "a.csv", "b.csv._COPYING_", "_k=1/x.csv")

    found = expand([f"{tmp_path}/*"])

    assert [Path(path).name for path in found] == ["_k=1", "a.csv"]


def test_a_hidden_name_is_found_when_it_is_named(tmp_path: Path) -> None:
    files(tmp_path, "_a.csv", ".b/c.csv")

    assert expand([f"{tmp_path}/_a.csv"]) == (f"{tmp_path}/_a.csv",)
    assert [file.path for file in local_files([f"{tmp_path}/.b"])] == [f"{tmp_path}/.b/c.csv"]


def test_a_missing_file_is_named_with_what_is_there_instead(tmp_path: Path) -> None:
    files(tmp_path, "orders.csv")

    with pytest.raises(LoadFailed, match=r"no file or folder `.*/order\.csv`") as caught:
        expand([f"{tmp_path}/order.csv"])

    assert caught.value.hint == f"`{tmp_path}` exists; it holds `orders.csv`"


def test_a_wildcard_without_matches_names_the_nearest_folder(tmp_path: Path) -> None:
    files(tmp_path, *(f"{n}.txt" for n in range(9)))

    with pytest.raises(LoadFailed, match=r"no file matches `.*/x/\*/\*\.csv`") as caught:
        expand([f"{tmp_path}/x/*/*.csv"])

    assert f"`{tmp_path}` exists" in (caught.value.hint or "")
    assert "and 4 more" in (caught.value.hint or "")


def test_other_schemes_are_not_supported() -> None:
    with pytest.raises(InvalidInput, match="`gs://` input is not supported"):
        expand(["gs://bucket/x.csv"])


def test_a_changed_file_has_another_state(tmp_path: Path) -> None:
    files(tmp_path, "a", "b")
    given = FilesInput("CSV", (f"{tmp_path}/a", f"{tmp_path}/b"), {})
    before = list_files(given)

    (tmp_path / "a").write_text("xy")
    (tmp_path / "b").unlink()
    after = list_again(before, given)

    assert [state.size for state in before] == [1, 1]
    assert [state.size for state in after] == [2, -1]
    assert list_again(before, given) == after
