"""Which Maven repository jars come from: the one the environment names, else Spark's own."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import InvalidInput, MachineLacks

REPOSITORY_VARIABLE = "LAKELOAD_MAVEN_REPOSITORY"
"""The environment variable that names another Maven repository by its base URL."""

_RESOLVER = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
_ROOT = re.compile(rb"https://[!-~]+?/maven2(?=/)")


def repository(environment: Mapping[str, str]) -> str:
    """Return the base URL of a repository, without a slash at its end.

    Without a setting it is the one that the Ivy in Spark's jars resolves `--packages` from, so a
    Spark that was built for another repository brings it along. Raises `InvalidInput` for a
    setting that is not a URL, `MachineLacks` without Spark, or where Spark names no repository.
    """
    configured = environment.get(REPOSITORY_VARIABLE, "").rstrip("/")
    if not configured:
        return spark_repository(find_spark(environment).home)
    if urlsplit(configured).scheme not in ("http", "https", "file"):
        raise InvalidInput(
            f"{REPOSITORY_VARIABLE} is not a URL of a Maven repository",
            hint="write it like `https://repository.example.com/maven2`",
        )
    return configured


def spark_repository(home: Path) -> str:
    """Return the repository written into the Ivy of the Spark in `home`; the first wins."""
    for jar in sorted(home.glob("jars/ivy-*.jar")):
        with zipfile.ZipFile(jar) as content:
            # A constant of the class, so it stands in the file as plain text.
            if _RESOLVER in content.namelist() and (found := _ROOT.search(content.read(_RESOLVER))):
                return found[0].decode("ascii")
    raise MachineLacks(
        f"the Spark in `{home}` names no Maven repository to fetch jars from",
        hint=f"name one in {REPOSITORY_VARIABLE}",
    )
