"""The driver's memory: from the document or the machine, and what is said when it does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.machine.memory import MIB, available_memory, driver_memory
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, MachineNotReady

GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("configured", "available", "expected"),
    [
        (None, 4 * GIB, "2048m"),
        (None, 64 * GIB, "8192m"),
        (None, 1 * GIB, "512m"),
        ("12g", 64 * GIB, "12288m"),
        ("1536m", 4 * GIB, "1536m"),
    ],
)
def test_driver_memory_setting_overrides_the_default(
    configured: str | None, available: int, expected: str
) -> None:
    assert driver_memory(configured, available) == expected


@pytest.mark.parametrize(
    ("configured", "available", "kind"),
    [
        (None, 600 * MIB, MachineNotReady),
        ("64g", 16 * GIB, MachineNotReady),
        ("256m", 16 * GIB, InvalidInput),
    ],
)
def test_memory_that_does_not_fit_names_the_setting(
    configured: str | None, available: int, kind: type[LakeloadError]
) -> None:
    with pytest.raises(kind) as refused:
        driver_memory(configured, available)
    assert "spark.driver_memory" in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/user/app", "user/app/memory.max"),
        ("0::/user/app", "user/memory.max"),
        ("0::/not/mounted/here", "memory.max"),
        ("4:cpu,memory:/box", "memory/box/memory.limit_in_bytes"),
        ("4:memory:/box", "memory/memory.limit_in_bytes"),
    ],
)
def test_a_cgroup_limit_counts_wherever_it_is_set(tmp_path: Path, line: str, file: str) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(line + "\n")
    limit = tmp_path / "cgroup" / file
    limit.parent.mkdir(parents=True)
    limit.write_text("123456789\n")
    assert available_memory(tmp_path / "cgroup", tmp_path / "proc") == 123456789


def test_memory_without_a_limit_is_the_physical_memory(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path, tmp_path) == available_memory(tmp_path, tmp_path / "none")
