"""A path in a document means what a shell takes it for, to every command alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lakeload.commands.init import path_from
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.launch.run import refuse_without_any_input
from lakeload.sources.files.inspected_tables import InspectedTable, inspect_paths
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.errors import LoadFailed, Refused
from lakeload_jobs.contract.spec import FilesInput, RunOptions
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.key_patterns import alternatives

pytestmark = pytest.mark.usefixtures("inspected_here")
Given = Callable[..., FilesInput]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Write a pipeline in a folder and return what the job is told of its table's paths."""

    def write(*paths: str, folder: str = "project") -> FilesInput:
        home = tmp_path / folder
        home.mkdir(parents=True, exist_ok=True)
        listed = ", ".join(f"'{path}'" for path in paths)
        (home / "pipeline.yml").write_text(
            "version: 1\nname: shop\n"
            "destination: {version: 1, bucket: my-data-lake, region: us-east-1}\n"
            "source: {type: FILES, format: CSV}\n"
            f"tables:\n  - {{table: orders, path: [{listed}]}}\n"
        )
        document = load_pipeline(home / "pipeline.yml", {})
        (table,) = table_specs(document, RunOptions())
        assert isinstance(table.input, FilesInput)
        return table.input

    return write


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("id\n1\n")


def found(given: FilesInput) -> list[str]:
    """Return the files that the job lists; `plan` and the check before Spark see the same."""
    listed = [file.path for file in list_files(given)]
    looked = source_of(given).count_files(given)
    assert (looked.files, looked.missing) == (len(listed), ())
    assert source_of(given).absent(given) == ()
    return listed


each_spelling = pytest.mark.parametrize(
    "path",
    [
        "orders.csv",
        "./orders.csv",
        ".//orders.csv",
        "../project/orders.csv",
        "sub/../orders.csv",
        "{tmp}/project/orders.csv",
        "{tmp}//project/./sub/../orders.csv",
        "~/project/orders.csv",
        "file:{tmp}/project/orders.csv",
        "file://{tmp}/project/orders.csv",
        "file://localhost{tmp}/project/orders.csv",
        "file://{tmp}/project/%6frders.csv",
        "ord{{ers,ers}}.csv",
    ],
)


@each_spelling
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_file_has_one_name_however_it_is_written(
    path: str, elsewhere: bool, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, "project/orders.csv", "project/sub/x.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    if elsewhere:
        monkeypatch.chdir(tmp_path / "project" / "sub")

    assert found(given(path.format(tmp=tmp_path))) == [f"{tmp_path}/project/orders.csv"]


each_name = pytest.mark.parametrize(
    "name",
    [
        "two words.csv",
        " led.csv",
        "a[1].csv",
        "b{1,2}.csv",
        "c*.csv",
        "d?#%20.csv",
        "é.csv",
        "$x.csv",
    ],
)
each_folder = pytest.mark.parametrize("folder", ["project", "[old] {a,b} x*"])


@each_name
@each_folder
def test_a_file_of_exactly_that_name_is_read(
    name: str, folder: str, given: Given, tmp_path: Path
) -> None:
    files(tmp_path / folder, name, "a1.csv", "b1.csv", "b2.csv", "cc.csv")

    assert found(given(name, folder=folder)) == [f"{tmp_path}/{folder}/{name}"]


def inspected(folder: Path, path: str) -> list[InspectedTable]:
    return list(inspect_paths([path], folder, FileBytes(), lambda found: ()))


def opened(tables: Sequence[InspectedTable]) -> list[str]:
    return [found.file.path for table in tables for found in table.inspected]


@each_spelling
def test_inspect_and_init_resolve_the_same_file(
    path: str, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, "project/orders.csv", "project/sub/x.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "project")

    tables = inspected(Path.cwd(), path.format(tmp=tmp_path))
    written = [path_from(tmp_path / "lake", path) for path in tables[0].paths]

    assert set(opened(tables)) == {f"{tmp_path}/project/orders.csv"}
    assert found(given(*written, folder="lake")) == [f"{tmp_path}/project/orders.csv"]


@each_name
@each_folder
def test_inspect_and_init_find_a_file_of_exactly_that_name(
    name: str, folder: str, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path / folder, name, "a1.csv", "b1.csv", "b2.csv", "cc.csv")
    monkeypatch.chdir(tmp_path / folder)

    tables = inspected(Path.cwd(), name)
    written = [path_from(tmp_path / "lake", path) for path in tables[0].paths]

    assert opened(tables) == [f"{tmp_path}/{folder}/{name}"]
    assert found(given(*written, folder="lake")) == [f"{tmp_path}/{folder}/{name}"]


def test_inspect_and_init_find_the_files_of_a_folder(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path / "in [1]", "orders_1.csv", "orders_2.csv", "a[1].csv")
    (tmp_path / "in [1]" / "a[1].csv").write_text("other,names\n1,2\n")
    (tmp_path / "link").symlink_to(tmp_path / "in [1]")
    monkeypatch.chdir(tmp_path)

    for folder in ("in [1]", "link"):
        tables = inspected(Path.cwd(), folder)
        listed = [[path_from(tmp_path / "lake", path) for path in table.paths] for table in tables]
        names = [
            [Path(file).name for file in found(given(*written, folder="lake"))]
            for written in listed
        ]
        assert names == [["a[1].csv"], ["orders_1.csv", "orders_2.csv"]]


def test_braces_expand_to_paths_that_must_all_exist(given: Given, tmp_path: Path) -> None:
    files(tmp_path / "project", "a/1.csv", "b/2.csv", "c/3.csv")

    assert found(given("{a,b}/*.csv")) == [
        f"{tmp_path}/project/a/1.csv",
        f"{tmp_path}/project/b/2.csv",
    ]
    with pytest.raises(LoadFailed, match=r"project/d/\*\.csv`"):
        list_files(given("{a,d}/*.csv"))


def test_braces_in_s3_are_the_same(given: Given) -> None:
    assert given("s3://raw/{a,b}/x.csv").paths == ("s3://raw/a/x.csv", "s3://raw/b/x.csv")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.csv", ("a.csv",)),
        ("{a}.csv", ("{a}.csv",)),
        ("{a,b}", ("a", "b")),
        ("x{a,}y", ("xay", "xy")),
        ("{a,b}/{1,2}", ("a/1", "a/2", "b/1", "b/2")),
        ("{a,b{1,2}}", ("a", "b1", "b2")),
        ("[{]a,b}", ("[{]a,b}",)),
        ("{a,b", ("{a,b",)),
    ],
)
def test_braces_expand_to_paths(path: str, expected: tuple[str, ...]) -> None:
    assert alternatives(path) == expected


def test_a_folder_behind_a_link_keeps_its_name(given: Given, tmp_path: Path) -> None:
    files(tmp_path / "far", "a.csv", "b.csv")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "home").symlink_to(tmp_path / "project")

    # What is remembered of loaded files are these names: loaded once, they are loaded.
    assert found(given("link/")) == [f"{tmp_path}/project/link/{name}.csv" for name in "ab"]
    assert found(given("link/*.csv", folder="home")) == [
        f"{tmp_path}/home/link/{name}.csv" for name in "ab"
    ]
    assert given("link", folder="home").folder == f"{tmp_path}/home"


def test_a_link_that_leads_nowhere_is_missing_before_spark_starts(
    given: Given, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    wrong = given("gone.csv")

    assert source_of(wrong).absent(wrong) == wrong.paths
    assert source_of(wrong).count_files(wrong).missing == wrong.paths


@pytest.mark.parametrize("path", ["no/such.csv", "*.parquet", "~nobody-here/x.csv"])
def test_path_a_load_cannot_read_is_rejected_before_spark_with_its_message(
    path: str, given: Given, tmp_path: Path
) -> None:
    files(tmp_path / "project", "orders.csv", "_hidden.csv")
    wrong = given(path)

    with pytest.raises(LoadFailed) as caught:
        list_files(wrong)
    looked = source_of(wrong).count_files(wrong)

    assert looked.missing == wrong.paths
    assert looked.why is not None
    assert (looked.why.message, looked.why.hint) == (caught.value.message, caught.value.hint)


def test_the_destination_is_found_below_the_home_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lake.yml").write_text("version: 1\nbucket: my-data-lake\nregion: us-east-1\n")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "pipeline.yml").write_text(
        "version: 1\nname: shop\ndestination: ~/lake.yml\n"
        "source: {type: FILES, format: CSV}\ntables: [{table: t, path: x.csv}]\n"
    )

    document = load_pipeline(tmp_path / "p" / "pipeline.yml", dict(os.environ))

    assert document.destination.model.bucket == "my-data-lake"
    with pytest.raises(Refused):
        refuse_without_any_input(table_specs(document, RunOptions()))
