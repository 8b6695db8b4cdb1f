"""The programs of PostgreSQL that the demo unpacks."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.postgres import unpack


def test_programs_are_unpacked_by_a_python_without_filters_for_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Python 3.11.2, which Debian 12 has."""
    extract: Any = tarfile.TarFile.extractall
    monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", lambda files, path: extract(files, path))
    program = b"#!/bin/sh\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as files:
        entry = tarfile.TarInfo("bin/initdb")
        entry.size, entry.mode = len(program), 0o755
        files.addfile(entry, io.BytesIO(program))
    with zipfile.ZipFile(tmp_path / "postgres.jar", "w") as jar:
        jar.writestr("postgres-linux.txz", packed.getvalue())

    programs = unpack(tmp_path / "postgres.jar", tmp_path / "server")

    assert (programs / "initdb").read_bytes() == program
    assert (programs / "initdb").stat().st_mode & 0o111
