"""Findings about memory, processors, folders, open files and the host's name."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.machine.doctor.checks import (
    GIB,
    cpu_quota,
    judge_host_name,
    judge_memory,
    judge_open_files,
    judge_processors,
    judge_scratch,
    judge_user_name,
    mount_of,
    own_folders,
    scratch,
    temporary,
)
from lakeload.machine.doctor.model import Need
from lakeload.ui.checks import word
from tests.unit.machine.doctor.machines import context, statuses


@pytest.mark.parametrize(
    ("available", "configured", "status"),
    [
        (16 * GIB, None, "ok"),
        (16 * GIB, "4g", "ok"),
        (4 * GIB, "4000m", "warning"),
        (4 * GIB, "8g", "problem"),
        (GIB // 2, None, "problem"),
    ],
)
def test_driver_heap_beyond_the_memory_is_a_problem(
    tmp_path: Path, available: int, configured: str | None, status: str
) -> None:
    machine = context(tmp_path, need=Need(driver_memory=configured))
    finding = judge_memory(machine, available, 32 * GIB)
    assert word(finding) == status
    assert "limited by a cgroup (of 32.0 GiB)" in finding.found
    assert bool(finding.command) == (status != "ok")


@pytest.mark.parametrize(
    ("group", "file", "text", "quota"),
    [
        ("0::/box", "box/cpu.max", "50000 100000\n", 0.5),
        ("0::/box/in", "box/cpu.max", "150000 100000\n", 1.5),
        ("0::/gone", "cpu.max", "200000 100000\n", 2.0),
        ("0::/box", "box/cpu.max", "max 100000\n", None),
        ("4:cpu,cpuacct:/box", "cpu/box/cpu.cfs_quota_us", "50000\n", 0.5),
        ("4:cpu,cpuacct:/box", "cpu/box/cpu.cfs_quota_us", "-1\n", None),
    ],
)
def test_a_quota_of_either_cgroup_version_counts(
    tmp_path: Path, group: str, file: str, text: str, quota: float | None
) -> None:
    machine = context(tmp_path)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(f"{group}\n")
    place = machine.host.cgroups / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    place.with_name("cpu.cfs_period_us").write_text("100000\n")
    assert cpu_quota(machine.host) == quota


def test_less_than_one_processor_is_a_warning() -> None:
    assert judge_processors(4, 0.5).status is CheckStatus.WARNING
    assert judge_processors(4, 2.0).status is CheckStatus.PASSED
    assert judge_processors(4, None).found == "4 processors"
    assert judge_processors(4, 8.0).found == "4 processors"


@pytest.mark.parametrize(
    ("free", "kind", "status"),
    [
        (50 * GIB, "ext4", "ok"),
        (GIB, "ext4", "warning"),
        (50 * GIB, "tmpfs", "warning"),
        (GIB // 8, "ext4", "problem"),
    ],
)
def test_scratch_space_below_the_minimum_is_a_warning(free: int, kind: str, status: str) -> None:
    finding = judge_scratch(Path("/scratch"), "SPARK_LOCAL_DIRS", free, kind)
    assert word(finding) == status
    assert finding.command.startswith("export SPARK_LOCAL_DIRS=") == (status != "ok")


def test_scratch_folder_check_names_what_gives_the_folder(tmp_path: Path) -> None:
    (first, second) = scratch(context(tmp_path, SPARK_LOCAL_DIRS=f"{tmp_path}, /"))
    assert f"`{tmp_path}` (SPARK_LOCAL_DIRS" in first.found
    assert "`/` (SPARK_LOCAL_DIRS" in second.found
    (own,) = scratch(context(tmp_path, TMPDIR=str(tmp_path)))
    assert f"`{tmp_path}` (TMPDIR" in own.found


def test_a_scratch_folder_below_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    (finding,) = scratch(context(tmp_path, SPARK_LOCAL_DIRS=str(tmp_path / "file" / "x")))
    assert finding.status is CheckStatus.FAILED


def test_own_folders_may_be_missing_but_must_be_creatable(tmp_path: Path) -> None:
    assert set(statuses(list(own_folders(context(tmp_path)))).values()) == {"ok"}
    (tmp_path / "cache").touch()
    found = statuses(list(own_folders(context(tmp_path))))
    assert found == {"cache-folder": "problem", "run-folder": "ok"}


def test_a_cache_with_a_comma_is_a_problem(tmp_path: Path) -> None:
    (cache, _) = own_folders(context(tmp_path / "a, b"))
    assert (cache.name, cache.status) == ("cache-folder", CheckStatus.FAILED)
    assert cache.command.startswith("export LAKELOAD_CACHE_DIR=")


def mounts(folder: Path, *lines: str) -> None:
    (folder / "proc").mkdir()
    (folder / "proc" / "mounts").write_text("".join(f"{line} 0 0\n" for line in lines))


def test_a_temporary_folder_with_noexec_is_a_warning_that_names_another(tmp_path: Path) -> None:
    mounts(tmp_path, "/dev/sda / ext4 rw", f"tmpfs {tmp_path} tmpfs rw,noexec")
    option = f"-Djava.io.tmpdir={tmp_path}"
    (finding,) = temporary(context(tmp_path, JAVA_TOOL_OPTIONS=option))
    assert finding.status is CheckStatus.WARNING
    assert f"-Djava.io.tmpdir={tmp_path}/cache/tmp" in finding.command
    assert list(temporary(context(tmp_path, JAVA_TOOL_OPTIONS="-Djava.io.tmpdir=/"))) == []
    (finding,) = temporary(context(tmp_path, TMPDIR=str(tmp_path)))
    assert finding.command.endswith(f"export TMPDIR={tmp_path}/cache/tmp")


def test_mount_of_a_folder_is_the_innermost_and_latest(tmp_path: Path) -> None:
    mounts(
        tmp_path,
        "/dev/sda / ext4 rw",
        f"a {tmp_path}/a\\040b tmpfs rw",
        f"b {tmp_path}/a\\040b xfs rw,noexec",
    )
    found = mount_of(tmp_path / "a b" / "c", tmp_path / "proc")
    assert found is not None
    assert (found.kind, found.options) == ("xfs", frozenset({"rw", "noexec"}))
    assert mount_of(tmp_path, tmp_path / "none") is None


def test_user_without_a_name_is_a_problem_where_executors_start(tmp_path: Path) -> None:
    cluster = context(tmp_path, need=Need(master="spark://host:7077"))
    assert judge_user_name("", cluster).status is CheckStatus.PASSED
    assert judge_user_name("uid-54321", context(tmp_path)).status is CheckStatus.PASSED
    finding = judge_user_name("uid-54321", cluster)
    assert (finding.name, finding.status) == ("user-name", CheckStatus.FAILED)
    assert finding.command == "lakeload sync pipeline.yml --master 'local[*]'"


@pytest.mark.parametrize(
    ("soft", "hard", "command"),
    [
        (1024, 4096, ""),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, ""),
        (256, resource.RLIM_INFINITY, "ulimit -n 4096"),
        (256, 2000, "ulimit -n 2000"),
        (256, 512, "sudo prlimit --pid $$ --nofile=4096:4096"),
    ],
)
def test_few_open_files_are_a_warning(soft: int, hard: int, command: str) -> None:
    assert judge_open_files(soft, hard).command == command


@pytest.mark.parametrize(
    ("master", "status"), [("local[*]", "warning"), ("spark://h:1", "problem")]
)
def test_host_name_without_an_address_is_a_problem(
    tmp_path: Path, master: str, status: str
) -> None:
    machine = context(tmp_path, need=Need(master=master))
    finding = judge_host_name("box", machine, resolves=False)
    assert word(finding) == status
    assert finding.command == "echo '127.0.1.1 box' | sudo tee -a /etc/hosts"
    assert judge_host_name("box", machine, resolves=True).status is CheckStatus.PASSED
