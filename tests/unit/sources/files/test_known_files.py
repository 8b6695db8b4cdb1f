"""Notes of loaded files: which versions left rejected records, and hashes of their content."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.sources.files.content import content_hashes
from lakeload_jobs.sources.files.known_files import by_folder, known_files
from lakeload_jobs.sources.paths.file_state import FileState

NO_SOURCE = FilesInput("CSV", (), {})
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


def test_known_file_with_a_hash_keeps_it_and_others_have_none() -> None:
    hashed = replace(OLD, content="ab")
    (note,) = by_folder([hashed, OTHER])

    assert note["contents"] == ["ab", ""]
    known = known_files([Evidence((), (note,))])
    assert known.contents == {("in/a.csv", 10, "ab")}
    assert [file.content for file in known.files] == ["ab", None]


@pytest.mark.parametrize("size", [0, 1, 8 << 20, (8 << 20) + 1])
def test_content_hash_is_that_of_the_hashes_of_chunks(tmp_path: Path, size: int) -> None:
    data = bytes(size)
    (tmp_path / "a").write_bytes(data)
    chunks = [data[at : at + (8 << 20)] for at in range(0, size, 8 << 20)]
    expected = hashlib.sha256(b"".join(hashlib.sha256(chunk).digest() for chunk in chunks))

    found = content_hashes([FileState(str(tmp_path / "a"), size, 0)], NO_SOURCE)

    assert found == (expected.hexdigest(),)


def test_content_hash_of_a_file_that_is_gone_is_a_change(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=r"changed while it was read: `.*/a` was removed"):
        content_hashes([FileState(str(tmp_path / "a"), 1, 0)], NO_SOURCE)
