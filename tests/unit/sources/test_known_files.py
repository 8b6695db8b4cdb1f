"""Notes of loaded files: which versions left rejected records."""

from __future__ import annotations

from dataclasses import replace

from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.sources.files.known_files import by_folder, known_files

OLD = FileState("in/a.csv", 10, 1)
BAD = replace(OLD, left_rejects=True)
NEW = FileState("in/a.csv", 20, 2)
OTHER = FileState("in/b.csv", 10, 1, "etag")


def test_known_file_without_rejects_is_stored_unchanged() -> None:
    (note,) = by_folder([OLD, OTHER])

    assert note == {
        "folder": "in",
        "names": ["a.csv", "b.csv"],
        "sizes": [10, 10],
        "modified": [1, 1],
        "etags": ["", "etag"],
    }
    assert known_files([Evidence((note,))]).left_rejects == frozenset()


def test_the_latest_version_of_a_file_says_whether_it_left_rejected_records() -> None:
    left = Evidence(by_folder([BAD, OTHER]))
    loaded = Evidence(by_folder([NEW]))
    again = Evidence(by_folder([OLD]))

    assert known_files([left]).left_rejects == {"in/a.csv"}
    assert known_files([left, loaded]).left_rejects == frozenset()
    assert known_files([loaded, left]).left_rejects == {"in/a.csv"}
    assert known_files([left, loaded, again]).left_rejects == frozenset()
    repeated = Evidence((), by_folder(known_files([loaded, left]).files))
    assert known_files([repeated]).left_rejects == {"in/a.csv"}
