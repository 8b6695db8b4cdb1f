"""AppCDS archives: shared class data that shortens the start of a JVM."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lakeload.machine.cache import mark_used, only_maker, remove_unused
from lakeload.machine.jars.pins import digest
from lakeload.machine.java import read_java
from lakeload.machine.spark import read_version
from lakeload_jobs.contract.errors import MachineNotReady

_FORMAT = "1"


@dataclass(frozen=True)
class ArchiveKey:
    """The four things an archive depends on, each as a text that changes when it does."""

    java: str
    spark: str
    jars: str
    conf: str

    @property
    def name(self) -> str:
        """The name of the archive's files, without what follows the dot."""
        parts = (_FORMAT, self.java, self.spark, self.jars, self.conf)
        return f"spark-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"

    @property
    def java_home(self) -> str:
        """The folder of Java."""
        return _home(self.java)

    @property
    def spark_home(self) -> str:
        """The folder of Spark."""
        return _home(self.spark)

    def difference(self, older: ArchiveKey) -> str | None:
        """Say what is not as it was when `older` was made; None when all is."""
        if self.java != older.java:
            return _changed("Java", older.java, self.java)
        if self.spark != older.spark:
            return _changed("Spark", older.spark, self.spark)
        if self.jars != older.jars:
            return "the jars on the class path have changed"
        if self.conf != older.conf:
            return f"SPARK_CONF_DIR was `{older.conf}`, and is `{self.conf}`"
        return None


def archive_key(
    java_home: Path, spark_home: Path, jars: Sequence[Path], environment: Mapping[str, str]
) -> ArchiveKey:
    """Return the key of the archive for a driver with `jars` in front of Spark's. Never fails:
    what is missing counts as missing, and the launch says so."""
    java = read_java(java_home)
    built = [java_home / "release", *sorted(java_home.glob("lib/server/*"))]
    return ArchiveKey(
        java=f"{java.version if java else '?'} ({java.vendor if java else '?'}) in `{java_home}` "
        + _digest(built),
        spark=f"{read_version(spark_home)} in `{spark_home}` "
        + _digest(sorted(spark_home.glob("jars/*.jar"))),
        jars=_digest(jars),
        conf=environment.get("SPARK_CONF_DIR", ""),
    )


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        try:
            status = file.stat()
            line = f"{file}\0{status.st_size}\0{int(status.st_mtime)}\0"
        except OSError:
            line = f"{file}\0missing\0"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _changed(what: str, before: str, now: str) -> str:
    shown = _before_digest(before), _before_digest(now)
    if shown[0] == shown[1]:
        return f"the files of {what} {shown[0]} have changed"
    return f"{what} was {shown[0]}, and is {shown[1]}"


def _before_digest(text: str) -> str:
    return text.rpartition(" ")[0]


def _home(text: str) -> str:
    return _before_digest(text).rpartition(" in `")[2].removesuffix("`")


logger = logging.getLogger(__name__)

FOLDER = "class-data"
"""Of the cache."""

Usability = Literal["usable", "outdated", "broken"]


@dataclass(frozen=True)
class Archive:
    """An archive that is described beside itself: what for, how long it is, the second it was
    written in (since 1970), its SHA-256 (hex)."""

    path: Path
    key: ArchiveKey
    features: tuple[str, ...]
    size: int
    modified: int
    sha256: str


@dataclass(frozen=True)
class ArchiveState:
    """An archive in the cache, whether it would be used now, and if not why."""

    archive: Archive
    state: Usability
    why: str | None = None


def find_archive(cache: Path, key: ArchiveKey) -> Path | None:
    """Return the archive made for `key`, None where there is none or it was modified since.

    Size and time tell, as for the jars that Java maps with it; `archive_states` reads all of it.
    """
    archive = _read(cache / FOLDER / f"{key.name}.json")
    if archive is None or archive.key != key:
        return None
    if why := _alteration(archive):
        logger.info("the AppCDS archive `%s` is not used: %s", archive.path, why)
        return None
    mark_used(archive.path)
    return archive.path


def make_archive(
    cache: Path,
    key: ArchiveKey,
    features: Collection[str],
    train: Callable[[Path, Path], None],
    waiting: Callable[[], None] = lambda: None,
) -> Archive:
    """Make the archive for `key`, or take the one that another process made meanwhile.

    `train` is given the file to make and a folder to work in. Archives that can never be used
    again are removed: those of another state of the same Java and Spark for the same sets, and
    those of a Java or Spark that is gone; and those not used for a long time. Raises
    `MachineNotReady` where the cache cannot be written, and what `train` raises.
    """
    folder = cache / FOLDER
    part = folder / f".{key.name}.part"
    if ":" in str(folder):
        raise MachineNotReady(
            f"Java cannot read an AppCDS archive from `{folder}`: the path has a colon",
            hint="set LAKELOAD_CACHE_DIR to a folder without that character",
        )
    if (there := _whole(folder, key)) is not None:
        return there
    try:
        with only_maker(part, waiting):
            try:
                found = _whole(folder, key)
                if found is None:
                    found = _make(folder, key, tuple(features), train)
                    _remove_superseded(folder, found)
                    _hint_marker(cache, features).unlink(missing_ok=True)
                return found
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise MachineNotReady(
            f"writing an AppCDS archive into `{folder}` failed: {error.strerror}",
            hint="set LAKELOAD_CACHE_DIR to a folder on a writable disk",
        ) from error


def is_first_hint(cache: Path, features: Iterable[str]) -> bool:
    """Return whether no load of this machine has named the missing archive for these sets of jars,
    and remember that one has. It is named again when an archive that was made is of no more use."""
    marker = _hint_marker(cache, features)
    if marker.exists():
        return False
    with contextlib.suppress(OSError):  # a cache that cannot be written remembers nothing
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    return True


def _hint_marker(cache: Path, features: Iterable[str]) -> Path:
    return cache / FOLDER / f"hint-{'-'.join(sorted(features)) or 'spark'}"


def archive_states(
    cache: Path, current: Callable[[tuple[str, ...]], ArchiveKey]
) -> tuple[ArchiveState, ...]:
    """Return every archive of the cache and whether it would be used now.

    `current` gives the key of this machine for the sets of jars that an archive was made for.
    """
    states = []
    for archive in _all(cache / FOLDER):
        why = current(archive.features).difference(archive.key)
        damage = None if why else _damage(archive)
        state: Usability = "outdated" if why else "broken" if damage else "usable"
        states.append(ArchiveState(archive, state, why or damage))
    return tuple(states)


def _make(
    folder: Path,
    key: ArchiveKey,
    features: tuple[str, ...],
    train: Callable[[Path, Path], None],
) -> Archive:
    work = folder / f".{key.name}.work"
    # Of a maker that was killed: whoever holds the lock is alone here.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        made = work / "archive.jsa"
        train(made, work)
        made.chmod(0o444)
        with made.open("rb") as file:
            # A machine that stops now must not leave a file of the right length without its bytes.
            os.fsync(file.fileno())
        status, sha256 = made.stat(), digest(made)
        path = folder / f"{key.name}.jsa"
        archive = Archive(path, key, features, status.st_size, int(status.st_mtime), sha256)
        description = work / "archive.json"
        description.write_text(json.dumps(_described(archive), indent=1), encoding="utf-8")
        made.replace(archive.path)
        # Last: an archive counts from the moment it is described.
        description.replace(archive.path.with_suffix(".json"))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return archive


def _remove_superseded(folder: Path, new: Archive) -> None:
    for old in _all(folder):
        if old.key != new.key and (_places(old) == _places(new) or _is_gone(old)):
            old.path.with_suffix(".json").unlink(missing_ok=True)
            old.path.unlink(missing_ok=True)
    # The folder of a maker that was killed has as many bytes as an archive.
    for path in remove_unused(folder, "spark-*.jsa", ".spark-*.work", keep=(new.path.name,)):
        path.with_suffix(".json").unlink(missing_ok=True)


def _places(archive: Archive) -> tuple[str, str, str, tuple[str, ...]]:
    """What stays the same when a Java or a Spark is upgraded in its place."""
    return archive.key.java_home, archive.key.spark_home, archive.key.conf, archive.features


def _is_gone(archive: Archive) -> bool:
    """Whether its Java or its Spark is, as after an upgrade into a folder with another name."""
    return not all(Path(home).is_dir() for home in (archive.key.java_home, archive.key.spark_home))


def _whole(folder: Path, key: ArchiveKey) -> Archive | None:
    archive = _read(folder / f"{key.name}.json")
    return archive if archive and archive.key == key and not _damage(archive) else None


def _alteration(archive: Archive) -> str | None:
    try:
        status = archive.path.stat()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if status.st_size != archive.size:
        return "its size has changed"
    return None if int(status.st_mtime) == archive.modified else "it was modified since"


def _damage(archive: Archive) -> str | None:
    if why := _alteration(archive):
        return why
    try:
        return None if digest(archive.path) == archive.sha256 else "its content has changed"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _all(folder: Path) -> list[Archive]:
    found = [_read(path) for path in sorted(folder.glob("spark-*.json"))]
    return [archive for archive in found if archive is not None]


def _described(archive: Archive) -> dict[str, Any]:
    return {name: value for name, value in asdict(archive).items() if name != "path"}


def _read(description: Path) -> Archive | None:
    """Return what is described there; None for nothing, or for what is no description."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        data: dict[str, Any] = json.loads(description.read_text(encoding="utf-8"))
        data |= {"key": ArchiveKey(**data["key"]), "features": tuple(data["features"])}
        return Archive(description.with_suffix(".jsa"), **data)
    return None
