"""Findings about the cache of jars."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.documents.named_files import NamedFiles
from lakeload.machine.appcds import Archive, ArchiveKey, ArchiveState, Usability
from lakeload.machine.doctor.checks import jars, judge_archives, judge_jars
from lakeload.machine.doctor.model import CheckContext, Need
from lakeload.machine.jars.pins import Jar, look_at_all
from lakeload.ui.checks import word
from tests.unit.machine.doctor.machines import context, destination

CONTENTS = {"a": b"one", "b": b"two"}
JARS = [
    Jar("g", name, "1", hashlib.sha256(content).hexdigest(), len(content), "s3")
    for name, content in CONTENTS.items()
]


@pytest.fixture
def machine(tmp_path: Path) -> CheckContext:
    folder = tmp_path / "cache" / "jars"
    folder.mkdir(parents=True)
    for jar in JARS:
        (folder / jar.file_name).write_bytes(CONTENTS[jar.artifact])
    return context(tmp_path, need=Need(NamedFiles(Path("my shop.yml")), destination(), ("s3",)))


def test_a_complete_cache_is_in_order(machine: CheckContext) -> None:
    finding = judge_jars(look_at_all(JARS, machine.host.cache / "jars"), machine)
    assert (finding.status, finding.command) == (CheckStatus.PASSED, "")
    assert "all 2 (s3)" in finding.found


def test_a_jar_whose_checksum_is_wrong_is_named(machine: CheckContext) -> None:
    (machine.host.cache / "jars" / "b-1.jar").write_bytes(b"tow")
    finding = judge_jars(look_at_all(JARS, machine.host.cache / "jars"), machine)
    assert (finding.status, finding.command) == (
        CheckStatus.WARNING,
        "lakeload jars fetch 'my shop.yml'",
    )
    assert "`b-1.jar`" in finding.found
    assert "`a-1.jar`" not in finding.found


def test_missing_jars_are_a_warning_only_where_they_are_known_to_be_needed(
    tmp_path: Path, machine: CheckContext
) -> None:
    (machine.host.cache / "jars" / "a-1.jar").unlink()
    states = look_at_all(JARS, machine.host.cache / "jars")
    asked, general = judge_jars(states, machine), judge_jars(states, context(tmp_path))
    assert (asked.status, general.status) == (CheckStatus.WARNING, CheckStatus.PASSED)
    assert asked.found.startswith("1 of 2 are not in")


def test_doctor_checks_only_the_jars_of_needed_sets(tmp_path: Path) -> None:
    finding, *_ = jars(context(tmp_path, need=Need(features=("avro",))))
    assert finding.found.startswith("1 of 1 are not in")
    finding, *_ = jars(context(tmp_path))
    assert finding.found == "none are needed beside Spark's own"


def archive(state: Usability, *features: str) -> ArchiveState:
    key = ArchiveKey(**dict.fromkeys((field.name for field in fields(ArchiveKey)), ""))
    made = Archive(Path("a.jsa"), key, features, 75 << 20, 0, "")
    return ArchiveState(made, state, None if state == "usable" else "another Java")


@pytest.mark.parametrize(
    ("states", "status", "found"),
    [
        ([], "ok", "there is no archive for loads like this one"),
        ([archive("usable", "s3")], "ok", "an archive of 75.0 MiB makes Spark start faster"),
        ([archive("usable")], "ok", "there is no archive for loads like this one"),
        ([archive("outdated", "s3")], "warning", "the archive is outdated: another Java"),
        ([archive("broken", "s3"), archive("usable", "s3")], "ok", "an archive of 75.0 MiB"),
    ],
)
def test_archive_of_other_jars_is_reported_as_missing(
    machine: CheckContext, states: list[ArchiveState], status: str, found: str
) -> None:
    finding = judge_archives(states, machine.need)
    assert word(finding) == status
    assert finding.found.startswith(found)


def test_archive_of_iceberg_tables_is_one_with_the_jars_of_iceberg(tmp_path: Path) -> None:
    need = Need(NamedFiles(Path("shop.yml")), destination(), ("s3", "iceberg"))

    plain = judge_archives([archive("usable", "s3")], need)
    assert plain.found == "there is no archive for loads like this one"
    finding = judge_archives([archive("usable", "iceberg", "s3")], need)
    assert finding.found.startswith("an archive of 75.0 MiB")


def test_archive_without_a_file_may_be_any() -> None:
    assert judge_archives([archive("usable")], Need()).found.startswith("an archive of")
    assert judge_archives([], Need()).found == "no archive"
