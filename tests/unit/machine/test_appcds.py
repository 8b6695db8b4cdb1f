"""An AppCDS archive is used for what it was made for, as it was made, or not at all.

Processes that build one at a time: tests/integration/machine/test_appcds.py.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakeload.machine.appcds import (
    FOLDER,
    Archive,
    ArchiveKey,
    archive_key,
    archive_states,
    find_archive,
    is_first_hint,
    make_archive,
)
from lakeload.machine.cache import DAYS
from lakeload_jobs.contract.errors import MachineNotReady

KEY = ArchiveKey("17.0.1 (Acme) in `/java` 1111", "4.1.4 in `/spark` 2222", "3333", "")


class Machine:
    """A Java, a Spark and two jars on the disk, whose parts can be upgraded."""

    def __init__(self, root: Path) -> None:
        self.java, self.spark = root / "java", root / "spark"
        self.jars = [root / "a.jar", root / "b.jar"]
        self.environment: dict[str, str] = {}
        for path in (
            self.java / "bin" / "java",
            self.java / "lib" / "server" / "libjvm.so",
            self.java / "lib" / "server" / "classes.jsa",
            self.spark / "jars" / "spark-core_2.13-4.1.4.jar",
            self.spark / "jars" / "other.jar",
            *self.jars,
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("content")
        (self.java / "bin" / "java").chmod(0o755)
        self.release("17.0.1", "17.0.1+12")

    def release(self, version: str, build: str, vendor: str = "Acme") -> None:
        text = f'IMPLEMENTOR="{vendor}"\nJAVA_VERSION="{version}"\nJAVA_RUNTIME_VERSION="{build}"\n'
        (self.java / "release").write_text(text)

    def key(self) -> ArchiveKey:
        return archive_key(self.java, self.spark, self.jars, self.environment)


def touch(path: Path) -> None:
    """Give a file of the same size another time, as a reinstallation does."""
    os.utime(path, (1, path.stat().st_mtime + 1))


CHANGES: dict[str, tuple[Callable[[Machine], object], str]] = {
    "java version": (lambda m: m.release("17.0.2", "17.0.2+8"), "Java was 17.0.1 (Acme)"),
    "java build": (lambda m: m.release("17.0.1", "17.0.1+13.1"), "the files of Java 17.0.1"),
    "java vendor": (lambda m: m.release("17.0.1", "17.0.1+12", "Other"), "Java was"),
    "java library": (lambda m: touch(m.java / "lib" / "server" / "libjvm.so"), "the files of Java"),
    "java's own archive": (
        lambda m: (m.java / "lib/server/classes.jsa").unlink(),
        "the files of Java",
    ),
    "spark jar added": (
        lambda m: (m.spark / "jars" / "new.jar").touch(),
        "the files of Spark 4.1.4",
    ),
    "spark jar changed": (
        lambda m: touch(m.spark / "jars" / "other.jar"),
        "the files of Spark 4.1.4",
    ),
    "spark version": (
        lambda m: (m.spark / "jars" / "spark-core_2.13-4.1.4.jar").rename(
            m.spark / "jars" / "spark-core_2.13-4.1.5.jar"
        ),
        "is 4.1.5",
    ),
    "jar changed": (lambda m: touch(m.jars[0]), "the jars on the class path have changed"),
    "jar removed": (lambda m: m.jars.pop(), "the jars on the class path have changed"),
    "jars in another order": (lambda m: m.jars.reverse(), "the jars on the class path"),
    "configuration folder": (
        lambda m: m.environment.update(SPARK_CONF_DIR="/etc/spark"),
        "SPARK_CONF_DIR was ``, and is `/etc/spark`",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_key_changes_with_each_thing_an_archive_depends_on(tmp_path: Path, name: str) -> None:
    change, why = CHANGES[name]
    machine = Machine(tmp_path)
    before = machine.key()
    assert machine.key() == before
    assert before.difference(before) is None

    change(machine)

    after = machine.key()
    assert after.name != before.name
    assert why in (after.difference(before) or "")


def test_archive_key_ignores_unrelated_settings(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    before = machine.key()
    machine.environment.update(HADOOP_CONF_DIR="/etc/hadoop", JAVA_HOME="/elsewhere")
    assert machine.key() == before


def trained(content: bytes = b"class data" * 1000) -> Callable[[Path, Path], None]:
    def train(target: Path, folder: Path) -> None:
        assert folder.is_dir()
        target.write_bytes(content)

    return train


def never(target: Path, folder: Path) -> None:
    raise AssertionError("nothing was to be made")


def made(cache: Path, key: ArchiveKey = KEY, features: tuple[str, ...] = ()) -> Archive:
    return make_archive(cache, key, features, trained())


def test_archive_is_built_once_and_found_by_its_key_only(tmp_path: Path) -> None:
    assert find_archive(tmp_path, KEY) is None
    archive = made(tmp_path)

    assert find_archive(tmp_path, KEY) == archive.path
    assert find_archive(tmp_path, replace(KEY, jars="4444")) is None
    assert make_archive(tmp_path, KEY, (), never) == archive
    names = {path.name for path in (tmp_path / FOLDER).iterdir()}
    assert names == {f"{KEY.name}.json", f"{KEY.name}.jsa"}


def damage(path: Path) -> None:
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def shorten(path: Path) -> None:
    modified = path.stat().st_mtime
    path.chmod(0o644)
    os.truncate(path, path.stat().st_size - 1)
    os.utime(path, (modified, modified))


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (touch, "it was modified since"),
        (shorten, "its size has changed"),
        (Path.unlink, "it cannot be read: No such file or directory"),
    ],
)
def test_altered_archive_is_rebuilt(
    tmp_path: Path, alter: Callable[[Path], None], why: str
) -> None:
    archive = made(tmp_path)
    alter(archive.path)

    assert find_archive(tmp_path, KEY) is None
    (state,) = archive_states(tmp_path, lambda features: KEY)
    assert (state.state, state.why) == ("broken", why)
    assert made(tmp_path).path == find_archive(tmp_path, KEY)


def test_damage_with_equal_size_and_time_is_found_by_a_full_read(
    tmp_path: Path,
) -> None:
    archive = made(tmp_path)
    damage(archive.path)

    (state,) = archive_states(tmp_path, lambda features: KEY)
    assert (state.state, state.why) == ("broken", "its content has changed")
    assert made(tmp_path).sha256 == archive.sha256
    (state,) = archive_states(tmp_path, lambda features: KEY)
    assert state.state == "usable"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key": {"java": 1}}', '{"key": {}, "size": "x"}']
)
def test_archive_with_an_invalid_description_is_missing(tmp_path: Path, text: str) -> None:
    archive = made(tmp_path)
    archive.path.with_suffix(".json").write_text(text)

    assert find_archive(tmp_path, KEY) is None
    assert archive_states(tmp_path, lambda features: KEY) == ()
    assert made(tmp_path).path == archive.path


def test_archive_with_a_description_of_another_key_is_missing(tmp_path: Path) -> None:
    archive = made(tmp_path)
    description = archive.path.with_suffix(".json")
    document = json.loads(description.read_text())
    document["key"]["jars"] = "4444"
    description.write_text(json.dumps(document))

    assert find_archive(tmp_path, KEY) is None


def test_archive_of_another_java_is_outdated(tmp_path: Path) -> None:
    made(tmp_path, features=("s3",))
    upgraded = replace(KEY, java="17.0.2 (Acme) in `/java` 9999")

    (state,) = archive_states(tmp_path, lambda features: upgraded)

    assert state.state == "outdated"
    assert state.why == "Java was 17.0.1 (Acme) in `/java`, and is 17.0.2 (Acme) in `/java`"
    assert state.archive.features == ("s3",)


def test_new_archive_replaces_outdated_ones(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    other_spark = tmp_path / "in a virtual environment"
    other_spark.mkdir()
    key = machine.key()
    old, other, with_jars = (
        made(tmp_path, key),
        made(tmp_path, replace(key, spark=f"4.1.4 in `{other_spark}` 2222")),
        made(tmp_path, replace(key, jars="5555"), ("avro",)),
    )
    machine.release("17.0.2", "17.0.2+8")

    new = made(tmp_path, machine.key())

    assert not old.path.exists()
    archives = tmp_path / FOLDER
    assert set(archives.glob("*.jsa")) == {new.path, other.path, with_jars.path}
    other_spark.rmdir()
    # One that is there already removes nothing: the next one that is made does.
    made(tmp_path, machine.key())
    assert other.path.exists()
    newest = made(tmp_path, replace(machine.key(), jars="6666"))
    assert set(archives.glob("*.jsa")) == {newest.path, with_jars.path}


def test_new_archive_replaces_unused_ones(tmp_path: Path) -> None:
    key = Machine(tmp_path).key()
    long_ago = time.time() - (DAYS + 1) * 86_400

    def train_long_ago(target: Path, folder: Path) -> None:
        target.write_text("class data")
        os.utime(target, (long_ago, long_ago))

    used, *others = (
        make_archive(tmp_path, replace(key, jars=name), (name,), train_long_ago)
        for name in ("s3", "avro")
    )
    for archive in (used, *others):
        os.utime(archive.path, (long_ago, long_ago))
    assert find_archive(tmp_path, used.key) == used.path
    new = made(tmp_path, key)
    left = {path.stem for path in (tmp_path / FOLDER).iterdir()}
    assert left == {used.key.name, new.key.name}
    assert find_archive(tmp_path, used.key) == used.path


def test_existing_archive_is_used_from_a_read_only_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = made(tmp_path)

    def refused(*_: object) -> None:
        raise AssertionError("nothing was to be written")

    monkeypatch.setattr("lakeload.machine.appcds.only_maker", refused)
    assert make_archive(tmp_path, KEY, (), never) == archive


def test_failed_archive_build_leaves_no_files(tmp_path: Path) -> None:
    def fails(target: Path, folder: Path) -> None:
        target.write_bytes(b"half of it")
        raise MachineNotReady("no")

    with pytest.raises(MachineNotReady, match="no"):
        make_archive(tmp_path, KEY, (), fails)

    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_cache_that_cannot_be_written_to_or_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(MachineNotReady, match=r"into `.*cache/class-data` failed"):
        make_archive(tmp_path / "cache", KEY, (), never)
    assert find_archive(tmp_path / "cache", KEY) is None
    with pytest.raises(MachineNotReady, match="has a colon"):
        make_archive(tmp_path / "a:b", KEY, (), never)


def test_first_hint_is_once_for_sets_of_jars_until_an_archive_was_made(tmp_path: Path) -> None:
    assert is_first_hint(tmp_path, ("iceberg", "aws"))
    assert not is_first_hint(tmp_path, ("aws", "iceberg"))
    assert is_first_hint(tmp_path, ())
    made(tmp_path, KEY, ("aws", "iceberg"))
    assert is_first_hint(tmp_path, ("aws", "iceberg"))


def test_first_hint_without_a_cache_that_can_be_written_is_always(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for _ in range(2):
        assert is_first_hint(tmp_path / "file" / "cache", ())
