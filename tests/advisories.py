"""Known advisories of the jars that Spark brings and that lakeload fetches.

`python -m tests.advisories` asks osv.dev for what is published, and fails with what
advisories.toml does not explain. `python -m tests.advisories --write` writes the list of Spark's
jars anew, after another version of Spark was looked at.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lakeload.machine.jars.pins import SETS, pinned
from lakeload.machine.spark import find_spark

HERE = Path(__file__).parent
JARS = HERE / "cases" / "spark_jars.txt"
OSV = "https://api.osv.dev/v1"
_VERSION = re.compile(r"\d[^-]*(-(jre|GA|m\d+|\d+)(?=-|$))?")
_POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")


class Artifact(NamedTuple):
    """One jar: its file, its name in Maven (`group:artifact`) and its version."""

    file: str
    name: str
    version: str


def known() -> dict[str, Any]:
    """Return advisories.toml."""
    return tomllib.loads((HERE / "advisories.toml").read_text(encoding="utf-8"))


def spark_jars() -> list[Path]:
    """Return the jars of the installed Spark."""
    return sorted(find_spark({}).home.glob("jars/*.jar"))


def artifact(jar: Path, groups: Mapping[str, str]) -> Artifact:
    """Return what Maven calls a jar: it says so itself, or its group is one of `groups`."""
    with zipfile.ZipFile(jar) as archive:
        poms = [match for name in archive.namelist() if (match := _POM.fullmatch(name))]
    # Some hold what others have made, and say so too.
    own = [(pom[2], pom[1]) for pom in poms if jar.name.startswith(f"{pom[2]}-")]
    own += [(name, group) for name, group in groups.items() if jar.name.startswith(f"{name}-")]
    name, group = max(own, key=lambda one: len(one[0]))
    return Artifact(jar.name, f"{group}:{name}", version(jar.name, name))


def version(file: str, name: str) -> str:
    """Return the version in a jar's file name; a classifier behind it is no part of it."""
    match = _VERSION.match(file.removesuffix(".jar")[len(name) + 1 :])
    if match is None:
        raise ValueError(f"{file} names no version")
    return match[0]


def unexplained(
    found: Mapping[Artifact, Iterable[frozenset[str]]], jars: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return what is published of jars and not explained; an advisory is all of its names."""
    return [
        f"{one.file}: {', '.join(sorted(names))}"
        for one, advisories in found.items()
        for names in advisories
        if not any(
            jar.get("unloaded") or names & set(jar["ids"])
            for jar in jars
            if fnmatch.fnmatchcase(one.file, jar["file"])
        )
    ]


def published(artifacts: Sequence[Artifact]) -> dict[Artifact, list[frozenset[str]]]:
    """Ask osv.dev for the advisories of each artifact."""
    queries = [
        {"package": {"ecosystem": "Maven", "name": one.name}, "version": one.version}
        for one in artifacts
    ]
    results = _asked("querybatch", {"queries": queries})["results"]
    return {
        one: [_names(advisory["id"]) for advisory in result.get("vulns", [])]
        for one, result in zip(artifacts, results, strict=True)
    }


def _names(advisory: str) -> frozenset[str]:
    return frozenset([advisory, *_asked(f"vulns/{advisory}").get("aliases", [])])


def _asked(path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(f"{OSV}/{path}", data, timeout=60) as answer:  # noqa: S310 - https
        document: dict[str, Any] = json.load(answer)
    return document


def page() -> str:
    """Return docs/advisories.md."""
    rows = [
        f"| `{jar['file'].removesuffix('.jar')}` | {'no' if jar.get('unloaded') else 'yes'} "
        f"| {', '.join(jar['ids'])} | {jar['why']} |"
        for jar in known()["jar"]
    ]
    return "\n".join(
        [
            "# Known advisories\n",
            "Spark brings about 290 jars, and most of them are never loaded. CI compares them, and",
            "the jars that `lakeload jars fetch` fetches, with the advisories of",
            "[OSV](https://osv.dev), and the Python packages of `requirements.lock` with those of",
            "PyPI. It fails for an advisory that is not listed here.\n",
            "Log4Shell (CVE-2021-44228) does not concern the Log4j of these jars.\n",
            "lakeload takes Spark's jars as Spark releases them. A newer jar comes with a newer",
            "`pyspark` of the same line, which you may install at any time.\n",
            "| jar | loaded | advisories | why they do not matter |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """Print what is published and not explained; return the exit status."""
    if "--write" in arguments:
        JARS.write_text("".join(f"{jar.name}\n" for jar in spark_jars()), encoding="utf-8")
        return 0
    groups = known()["groups"]
    fetched = [
        Artifact(jar.file_name, f"{jar.group}:{jar.artifact}", jar.version) for jar in pinned(*SETS)
    ]
    artifacts = [*(artifact(jar, groups) for jar in spark_jars()), *fetched]
    problems = unexplained(published(artifacts), known()["jar"])
    summary = f"{len(artifacts)} jars, {len(problems)} advisories that are not explained"
    sys.stdout.write("\n".join([*problems, summary, ""]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
