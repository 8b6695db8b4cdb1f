"""One maker for each file of a cache, whatever becomes of the others."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from lakeload.machine.cache import finish, only_maker


def test_lock_waiter_after_a_finished_file_opens_a_new_one(tmp_path: Path) -> None:
    part, target = tmp_path / ".x.part", tmp_path / "x"
    waited: list[Path] = []

    with only_maker(part, lambda: None) as first:
        first.write(b"the first")

        def waiting() -> None:
            waited.append(part)
            # The first maker ends, and a third one has begun to write under the same name.
            finish(first, part, target)
            part.write_bytes(b"the third's")
            first.close()

        with only_maker(part, waiting) as second:
            content = second.read()

    assert waited == [part]
    assert content == b"the third's"
    assert target.read_bytes() == b"the first"


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(OSError, match="its file system has no file locks"),
        only_maker(tmp_path / ".x.part", lambda: None),
    ):
        raise AssertionError("nobody has the lock")
