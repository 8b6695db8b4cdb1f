"""Paths of documents → absolute paths: the job runs in another folder."""

from __future__ import annotations

from pathlib import Path

from lakeload_jobs.contract.secrets import SecretReference


def absolute_reference(reference: SecretReference | None, folder: Path) -> SecretReference | None:
    """Return a reference whose file, if it names one, is found from anywhere."""
    if reference is None or reference.kind != "file":
        return reference
    return SecretReference("file", absolute_path(folder, reference.name))


def absolute_path(folder: Path, path: str) -> str:
    """Join without resolving links or `..`: after a link they mean what the file system says."""
    return str(folder.absolute() / path)
