"""Every file of a folder is read by exactly one of the tables that `init` and `inspect` write."""

from __future__ import annotations

import datetime
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakeload.sources.files.inspected_tables import InspectedTable, inspect_paths
from lakeload.sources.paths import local_paths
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.text.options import option_text
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.key_patterns import alternatives, names_path
from lakeload_jobs.sources.paths.objects import SourceObjects
from lakeload_jobs.sources.readers import SourceReaders
from tests.environments import EXHAUSTIVE

EXAMPLES = 150 if EXHAUSTIVE else 50
"""Trees that each property tries: `make faults` starts a process for each group of files."""

pytestmark = pytest.mark.usefixtures("inspected_here")

ORDERS, PEOPLE = "id,amount\n1,2.5\n2,3.5\n", "name,born\nanna,1990-01-02\nbert,1991-02-03\n"
CONTENTS = (ORDERS, PEOPLE, '{"id": 1}\n{"id": 2}\n', "")
FOLDERS = ("", "a/", "A/", "a/day=1/", "a/day=2/", "a/day=2/deep/", "b/c/", "b/c/n=1/", "day=1/")
NAMES = ("x.csv", "y.csv", "X.csv", "x.CSV", "x1.csv", "x2.csv", "x.json", "x[1].csv", "x{1,2}.csv")
TREES = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)).map("".join),
    st.sampled_from(CONTENTS),
    min_size=1,
    max_size=8,
)
DAYS = {
    f"a/day={day}/{name}.csv": text
    for day in (1, 2)
    for name, text in (("x", ORDERS), ("y", PEOPLE))
}


@dataclass
class Bucket:
    """Lists and reads the files below a folder as S3 does the objects of a bucket."""

    folder: Path

    def list_objects_v2(
        self, *, Bucket: str, Prefix: str, MaxKeys: int, Delimiter: str = ""
    ) -> dict[str, Any]:
        """Return what begins with the prefix, of one level with a delimiter."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        sizes = {str(path.relative_to(self.folder)): path.stat().st_size for path in files}
        keys = [key for key in sizes if key.startswith(Prefix)]
        below = {key: key[len(Prefix) :].partition("/") for key in keys if Delimiter}
        folders = sorted({Prefix + first + "/" for first, slash, _ in below.values() if slash})
        at = datetime.datetime.fromtimestamp(0, datetime.UTC)
        return {
            "Contents": [
                {"Key": key, "Size": sizes[key], "LastModified": at, "ETag": '"1"'}
                for key in keys
                if not (key in below and below[key][1])
            ],
            "CommonPrefixes": [{"Prefix": folder} for folder in folders],
        }

    def head_object(self, *, Bucket: str, Key: str) -> None:
        """Find the object."""
        assert (self.folder / Key).is_file()

    def get_object(self, *, Bucket: str, Key: str, **_: str) -> dict[str, Any]:
        """Return all of the object: no test file is longer than what is asked for."""
        return {"Body": io.BytesIO((self.folder / Key).read_bytes())}


@dataclass(frozen=True)
class Objects(FileBytes):
    """Opens the objects of a `Bucket`."""

    folder: Path = Path()

    @contextmanager
    def stream(self, file: FileState, start: int = 0) -> Iterator[Any]:
        """Open a file from byte `start` on."""
        name = file.path.removeprefix("s3://bucket/")
        yield io.BytesIO((self.folder / name).read_bytes()[start:])


def read_by(table: InspectedTable, folder: Path) -> list[str]:
    """Return the files that a load of the table reads, as seen from `folder` or the bucket."""
    assert table.format is not None
    paths = tuple(
        one
        for path in table.paths
        for one in (alternatives(path) if is_s3(path) else local_paths(folder, path))
    )
    options = {name: option_text(value) for name, value in table.options.items()}
    readers = cast(SourceReaders, SimpleNamespace(objects=lambda _: objects_of(folder)))
    files = list_files(FilesInput(table.format, paths, options), readers)
    return [file.path.removeprefix("s3://bucket/").removeprefix(f"{folder}/") for file in files]


def inspected(tree: Mapping[str, str], folder: Path, path: str) -> tuple[InspectedTable, ...]:
    """Return the tables of a tree that is written into the folder, or the bucket."""
    for file, text in tree.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    opener = Objects(folder=folder) if is_s3(path) else FileBytes()
    return inspect_paths((path,), folder, opener, lambda paths: [*objects_of(folder).find(paths)])


def objects_of(folder: Path) -> SourceObjects:
    """Return what lists the bucket."""
    return SourceObjects(cast(AwsSession, SimpleNamespace(s3=Bucket(folder))))


def times_read(tree: Mapping[str, str], path: str) -> dict[str, int]:
    """Return how many tables read each file of a tree, of which `path` is inspected."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        tables = inspected(tree, folder, path)
        assert [table.error for table in tables if table.error] == []
        counts = Counter(file for table in tables for file in read_by(table, folder))
        return {file: counts[file] for file in {*tree, *counts}}


def under(tree: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the tree in a folder."""
    return {f"{folder}/{name}": text for name, text in tree.items()}


@settings(max_examples=EXAMPLES, suppress_health_check=[*HealthCheck])
@given(tree=TREES)
@example(tree=DAYS)
@example(tree={"A.csv": ORDERS, "a.csv": PEOPLE})
@example(tree={"a/day=1/x.csv": ORDERS, "a/day=2/x.csv": PEOPLE, "a/x.csv": ORDERS})
def test_each_file_of_a_folder_is_read_by_exactly_one_table(tree: dict[str, str]) -> None:
    below = under(tree, "data")

    assert times_read(tree, ".") == dict.fromkeys(tree, 1)
    assert times_read(below, "s3://bucket/data/") == dict.fromkeys(below, 1)


@settings(max_examples=EXAMPLES, suppress_health_check=[*HealthCheck])
@given(tree=TREES, pattern=st.sampled_from(["*", "**", "**/x*", "a/*", "*.csv", "*/*/*.csv"]))
def test_each_file_that_a_glob_names_is_read_by_exactly_one_table(
    tree: dict[str, str], pattern: str
) -> None:
    below = under({**tree, "a/b/x0.csv": ORDERS, "x0.csv": ORDERS}, "data")

    local = times_read(below, f"data/{pattern}")

    assert local == times_read(below, f"s3://bucket/data/{pattern}")
    assert local == {file: int(names_below(f"data/{pattern}", file)) for file in below}


def names_below(pattern: str, file: str) -> bool:
    """Whether a glob names a file or a folder above it."""
    parts = file.split("/")
    return any(names_path(pattern, "/".join(parts[:end])) for end in range(1, len(parts) + 1))


def test_objects_of_a_folder_with_the_same_columns_are_one_table(tmp_path: Path) -> None:
    tree = {f"raw/{name}.csv": ORDERS for name in ("anna", "bert", "carl")}

    (table,) = inspected(tree, tmp_path, "s3://bucket/raw/")

    assert (table.name, table.paths, table.files) == ("raw", ("s3://bucket/raw/",), 3)


def test_objects_of_a_path_are_listed_once(tmp_path: Path) -> None:
    tree = {f"raw/{name}.csv": ORDERS for name in ("anna", "bert", "carl")}
    inspected(tree, tmp_path, "s3://bucket/raw/")
    asked: list[str] = []

    def find(paths: Sequence[str]) -> list[FileState]:
        asked.extend(paths)
        return [*objects_of(tmp_path).find(paths)]

    inspect_paths(("s3://bucket/raw/",), tmp_path, Objects(folder=tmp_path), find)

    assert asked == ["s3://bucket/raw/"]


@pytest.mark.parametrize(
    ("tree", "tables"),
    [
        (DAYS, {"a_x": {"pathGlobFilter": "x.csv"}, "a_y": {"pathGlobFilter": "y.csv"}}),
        (
            {"a/day=1/x1.csv": ORDERS, "a/day=2/x2.csv": ORDERS, "a/day=1/y.csv": PEOPLE},
            {"a_x": {"pathGlobFilter": "x*.csv"}, "a_y": {"pathGlobFilter": "y.csv"}},
        ),
        (
            {"a/day=1/x.csv": ORDERS, "a/day=2/y.json": CONTENTS[2]},
            {"a": {"pathGlobFilter": "*.csv"}, "a_ndjson": {"pathGlobFilter": "*.json"}},
        ),
    ],
    ids=["names", "digits", "formats"],
)
def test_tables_of_the_same_folders_read_their_own_files_and_later_ones(
    tree: dict[str, str], tables: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    found = inspected(tree, tmp_path, ".")

    assert {table.name: table.listing for table in found} == tables
    assert {table.paths for table in found} == {("a",)}
    assert all("day" in table.columns for table in found)


def test_files_of_one_name_in_folders_of_values_keep_the_columns_of_these(tmp_path: Path) -> None:
    tree = {"a/day=1/x.csv": ORDERS, "a/day=2/x.csv": PEOPLE}

    orders, people = inspected(tree, tmp_path, ".")

    assert (orders.paths, people.paths) == (("a/day=1/x.csv",), ("a/day=2/x.csv",))
    assert orders.listing == people.listing == {"basePath": f"{tmp_path}/a"}
    assert [*people.columns] == ["name", "born", "day"]


PIPELINE = """# What is loaded.
version: 1
name: shop
destination: destination.yml
source: {type: FILES, format: CSV}
tables:
  - {table: a, path: a.csv}
"""
OWN = {
    "pipeline.yml": PIPELINE,
    "destination.yml": "version: 1\nbucket: b\nregion: us-east-1\n",
    "other.yaml": PIPELINE,
    "lake/lake.json": '{"port": 18301}',
    "lake/server.log": "I1128 06:46:02 started, 1\n",
    "lake/data/admin/config.json": '{"a": 1}',
}


@pytest.mark.parametrize("path", [".", "*", "**"])
def test_files_that_lakeload_has_written_are_passed_over(path: str, tmp_path: Path) -> None:
    tree = {"anna.csv": ORDERS, "bert.csv": ORDERS}
    (tmp_path / "lake" / "data").mkdir(parents=True)
    os.mkfifo(tmp_path / "lake" / "s3.sock")

    (table,) = inspected(tree | OWN, tmp_path, path)

    assert (table.error, table.warnings) == (None, ())
    assert sorted(read_by(table, tmp_path)) == [*tree]


def test_files_that_lakeload_has_not_written_are_inspected(tmp_path: Path) -> None:
    tree = {
        "lake.json": '{"port": 1}',
        "compose.yml": "version: 3\nservices: {}\n",
        "a/lake.json": "[1]",
        "a/data/x.csv": ORDERS,
    }

    found = inspected(tree, tmp_path, ".")
    named = inspected(OWN, tmp_path, "pipeline.yml")

    assert {table.name for table in found if table.error is None} == {"lake", "lake_json", "x"}
    assert [table.paths for table in found if table.error] == [("compose.yml",)]
    assert "text or code, by its name" in str(named[0].error)


@pytest.mark.parametrize("path", [".", "*"])
def test_configuration_files_that_will_be_written_are_read_by_no_table(
    path: str, tmp_path: Path
) -> None:
    for name in ("anna.csv", "bert.csv"):
        (tmp_path / name).write_text(ORDERS, encoding="utf-8")
    later = str(tmp_path / "pipeline.yml")

    (table,) = inspect_paths((path,), tmp_path, FileBytes(), lambda _: (), beside=(later,))
    (whole,) = inspect_paths((path,), tmp_path, FileBytes(), lambda _: ())

    assert (table.paths, whole.paths) == (("*.csv",), (path,))


def test_configuration_files_that_will_be_written_behind_a_link_are_read_by_no_table(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("anna.csv", "bert.csv"):
        (tmp_path / "data" / name).write_text(ORDERS, encoding="utf-8")
    (tmp_path / "in").symlink_to("data")
    later = str(tmp_path / "data" / "pipeline.yml")

    (table,) = inspect_paths(("in/",), tmp_path, FileBytes(), lambda _: (), beside=(later,))
    (apart,) = inspect_paths(("in/",), tmp_path, FileBytes(), lambda _: (), beside=("/x/p.yml",))

    assert (table.paths, apart.paths) == (("in/*.csv",), ("in",))
