"""What a class-data archive is good for: one Java, one Spark, one class path, as they are now.

Java refuses an archive of another class path by itself, and lakeload gives it none that it knows
to be of another: sizes and modification times stand for the content of what is not ours. Times in
whole seconds, as Java compares them: the layers of a container image keep no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload.machine.local.java import read_java
from lakeload.machine.local.spark import read_version

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
