"""The jars of the catalog servers, pinned in catalog_jars.toml, in a cache that all runs share."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar, pinned
from lakeload.machine.spark import find_spark
from tests.servers.jars import CACHE, REPOSITORY

_PINS = Path(__file__).with_name("catalog_jars.toml")


@dataclass(frozen=True)
class ClassifiedJar(Jar):
    """A jar with a classifier, as servers and tests are published."""

    classifier: str = ""

    @property
    def file_name(self) -> str:
        """The name of its file, in a repository and in the cache."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"


def catalog_jars(name: str) -> list[Path]:
    """Return the jars of one server, fetched if need be. Raises `MachineNotReady`."""
    pins = tomllib.loads(_PINS.read_text(encoding="utf-8"))[name]
    jars = []
    for coordinates, pin in pins.items():
        group, artifact, version, *rest = coordinates.split(":")
        jars.append(
            ClassifiedJar(
                group, artifact, version, pin["sha256"], pin["size"], classifier="".join(rest)
            )
        )
    return list(fetch(jars, CACHE / "catalogs", REPOSITORY))


def rest_class_path() -> list[Path]:
    """Return the class path of the REST fixture: its own jars, AWS's of the product, and what
    Spark brings (Jackson, Hadoop, py4j)."""
    bundle = [jar for jar in pinned("iceberg") if jar.artifact == "iceberg-aws-bundle"]
    spark = find_spark({}).home / "jars"
    aws = fetch(bundle, CACHE / "jars", REPOSITORY)
    return [*catalog_jars("rest"), *aws, *sorted(spark.glob("*.jar"))]


def py4j_jar() -> Path:
    """Return the jar that lets Python drive a JVM."""
    (jar,) = find_spark({}).home.glob("jars/py4j-*.jar")
    return jar
