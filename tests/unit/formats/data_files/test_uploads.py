"""Open uploads are noted where the driver finds them, and never named after the commit."""

from __future__ import annotations

from pathlib import Path

from lakeload_jobs.formats.data_files.uploads import NotedUpload, UploadRegistry

ONE = NotedUpload("lake/a", "id-1")
TWO = NotedUpload("lake/b", "id-2")


def test_noted_uploads_are_named_by_another_process(tmp_path: Path) -> None:
    task = UploadRegistry(tmp_path / "0")
    assert task.add(ONE)
    assert task.add(TWO)

    noted = UploadRegistry(tmp_path / "0").close()

    assert sorted(noted, key=lambda upload: upload.key) == [ONE, TWO]


def test_upload_registered_after_the_stop_is_rejected_and_listed(tmp_path: Path) -> None:
    registry = UploadRegistry(tmp_path)
    registry.close()

    assert not registry.add(ONE)
    assert registry.close() == [ONE]


def test_upload_registry_is_empty_after_the_commit(tmp_path: Path) -> None:
    registry = UploadRegistry(tmp_path)
    registry.add(ONE)

    registry.hand_over()

    assert registry.close() == []


def test_upload_registry_ignores_an_incomplete_line(tmp_path: Path) -> None:
    registry = UploadRegistry(tmp_path)
    registry.add(ONE)
    (tmp_path / "half.json").touch()

    assert registry.close() == [ONE]
