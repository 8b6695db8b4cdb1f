"""Globs are expanded by lakeload, in one order, and take names as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.listing import list_again, list_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, normal_path, partition_base
from lakeload_jobs.sources.paths.local_listing import expand, link_warnings, local_files
from lakeload_jobs.sources.paths.spark_paths import plain_path, spark_path


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

    hint = f"did you mean `orders.csv`? `{tmp_path}` exists; it holds `orders.csv`"
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("order-*.csv", "orders_2026.csv"),
        ("Orders_2026.CSV", "orders_2026.csv"),
        ("2026/sale/day.csv", "sales"),
        ("2026/sales/dya.csv", "day.csv"),
        ("2026/s*/x.csv", None),
        ("orders_2026.csv/x.csv", None),
        ("hidden.csv", None),
    ],
)
def test_a_path_that_matches_nothing_names_the_nearest_name(
    tmp_path: Path, path: str, meant: str | None
) -> None:
    files(tmp_path, "orders_2026.csv", "2026/sales/day.csv", "_hidden.csv", "a.txt")

    with pytest.raises(LoadFailed) as caught:
        expand([f"{tmp_path}/{path}"])

    found = re.match(r"did you mean `(.*?)`\? `", caught.value.hint or "")
    assert (found[1] if found else None) == meant


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


def names(found: Iterable[FileState], folder: Path) -> list[str]:
    return sorted(os.path.relpath(file.path, folder) for file in found)


@pytest.mark.parametrize("path", ["", "/**", "/**/*.csv"])
def test_links_back_to_a_folder_are_not_followed(tmp_path: Path, path: str) -> None:
    files(tmp_path, "x.csv", "a/y.csv", "b/z.csv")
    for number in range(5):
        (tmp_path / f"here{number}").symlink_to(".")
        (tmp_path / "a" / f"up{number}").symlink_to(tmp_path)

    found = local_files([f"{tmp_path}{path}"])

    assert names(found, tmp_path) == ["a/y.csv", "b/z.csv", "x.csv"]


def test_links_between_two_folders_end(tmp_path: Path) -> None:
    files(tmp_path, "a/y.csv", "b/z.csv")
    (tmp_path / "a" / "other").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "other").symlink_to(tmp_path / "a")
    given = FilesInput("CSV", (str(tmp_path),), {"recursiveFileLookup": "true"})

    found = list_files(given)

    assert names(found, tmp_path) == ["a/y.csv", "b/z.csv"]
    assert link_warnings(found) == (
        f"`{tmp_path}/b/other/y.csv` leads to `{tmp_path}/a/y.csv` by a link: its rows are loaded "
        "once (and 1 more such)",
    )


@pytest.mark.parametrize(
    ("paths", "read", "links"),
    [
        (("*.csv",), ["a.csv"], ["current.csv", "newest.csv"]),
        (("current.csv", "a.csv"), ["a.csv"], ["current.csv"]),
        (("newest.csv", "current.csv"), ["current.csv"], ["newest.csv"]),
        (("current.csv",), ["current.csv"], []),
        (("day/*.csv", "latest"), ["day/x.csv"], ["latest/x.csv"]),
    ],
)
def test_file_that_links_name_again_is_read_once(
    tmp_path: Path, paths: tuple[str, ...], read: list[str], links: list[str]
) -> None:
    files(tmp_path, "a.csv", "day/x.csv")
    (tmp_path / "current.csv").symlink_to("a.csv")
    (tmp_path / "newest.csv").symlink_to("current.csv")
    (tmp_path / "latest").symlink_to("day")

    found = list_files(FilesInput("CSV", tuple(f"{tmp_path}/{path}" for path in paths), {}))

    assert names(found, tmp_path) == read
    assert [os.path.relpath(link, tmp_path) for file in found for link in file.links] == links
    assert len(link_warnings(found)) == bool(links)


def test_files_of_one_content_with_two_names_are_two_files(tmp_path: Path) -> None:
    files(tmp_path, "a.csv")
    (tmp_path / "b.csv").hardlink_to(tmp_path / "a.csv")

    assert len(list_files(FilesInput("CSV", (f"{tmp_path}/*.csv",), {}))) == 2


@pytest.mark.parametrize("path", ["", "/*.csv", "/**", "/x.csv"])
@pytest.mark.parametrize(
    ("target", "said"), [("x.csv", "in a circle"), ("gone.csv", "which is not there")]
)
def test_link_that_leads_nowhere_is_an_error(
    tmp_path: Path, path: str, target: str, said: str
) -> None:
    files(tmp_path, "a.csv")
    (tmp_path / "x.csv").symlink_to(target)

    with pytest.raises(LoadFailed) as failed:
        list_files(FilesInput("CSV", (f"{tmp_path}{path}",), {}))

    assert failed.value.message == f"`{tmp_path}/x.csv` is a link to `{target}`, {said}"


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(("make", "what"), [(make_pipe, "a named pipe"), (make_device, "a device")])
def test_what_is_no_file_is_refused_by_name_and_passed_over_in_a_folder(
    tmp_path: Path, make: Callable[[Path], None], what: str
) -> None:
    files(tmp_path, "a.csv")
    make(tmp_path / "x.csv")

    assert names(local_files([str(tmp_path), f"{tmp_path}/**"]), tmp_path) == ["a.csv", "a.csv"]
    for path in ("x.csv", "*.csv"):
        with pytest.raises(LoadFailed, match=f"/x.csv` is {what}, and lakeload reads files alone"):
            list(local_files([f"{tmp_path}/{path}"]))


def test_named_pipe_in_place_of_a_listed_file_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    make_pipe(tmp_path / "x.csv")
    listed = FileState(f"{tmp_path}/x.csv", 2, 0)

    with pytest.raises(LoadFailed, match="is a named pipe"), FileBytes().stream(listed):
        pass


@pytest.fixture
def folder_as_nobody() -> Iterator[Path]:
    """A folder with another one that the user of the test may not read."""
    with TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        files(folder, "a.csv", "closed/b.csv", "listed/c.csv")
        (folder / "closed").chmod(0)
        (folder / "listed").chmod(0o444)
        before = os.geteuid()
        if before == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(before)
            for name in ("closed", "listed"):
                (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("", "closed"),
        ("/**", "closed"),
        ("/*", "closed"),
        ("/*/*.csv", "closed"),
        ("/closed/*.csv", "closed"),
        ("/closed/b.csv", "closed/b.csv"),
        ("/listed/*.csv", "listed"),
        ("/listed/c.csv", "listed/c.csv"),
    ],
)
def test_folder_that_may_not_be_read_is_named(
    folder_as_nobody: Path, path: str, named: str
) -> None:
    with pytest.raises(LoadFailed) as failed:
        list(local_files([f"{folder_as_nobody}{path}"]))

    assert f"`{folder_as_nobody}/{named}" in failed.value.message
    assert "cannot be read: Permission denied" in failed.value.message


def test_folders_of_any_depth_are_read(tmp_path: Path) -> None:
    made = []
    deepest = tmp_path
    for _ in range(1100):
        deepest /= "d"
        deepest.mkdir()
        made.append(deepest)
    (deepest / "a.csv").write_text("x")
    try:
        assert [file.size for file in local_files([str(tmp_path)])] == [1]
    finally:
        (deepest / "a.csv").unlink()
        for folder in reversed(made):  # a recursive removal is too deep for Python
            folder.rmdir()


@pytest.mark.parametrize("path", ["x" * 300, "x\\0y", "x" * 300 + "/*.csv", "a.csv/b.csv"])
def test_path_that_no_file_can_have_is_an_error(tmp_path: Path, path: str) -> None:
    files(tmp_path, "a.csv")

    with pytest.raises(LoadFailed, match="no file"):
        list(local_files([f"{tmp_path}/{path}"]))
