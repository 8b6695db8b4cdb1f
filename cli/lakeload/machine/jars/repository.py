"""Which Maven repository jars come from: the one that is named, else a mirror, else Spark's."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakeload.config.document import fill
from lakeload.machine.jars.download import Login, without_login
from lakeload.machine.jars.maven_settings import MavenSettings, read_settings
from lakeload.machine.local.spark import find_spark
from lakeload_jobs.contract.errors import InvalidInput, MachineLacks

REPOSITORY_VARIABLE = "LAKELOAD_MAVEN_REPOSITORY"
"""The environment variable that names another Maven repository by its base URL."""
REPOSITORY_PROPERTY = "spark.jars.repositories"
"""Spark's own property, in a pipeline's `spark.conf`: further repositories, the first counts."""

_RESOLVER = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"
_ROOT = re.compile(rb"https://[!-~]+?/maven2(?=/)")


@dataclass(frozen=True)
class Repository:
    """A repository: its base URL without login and final slash, and what names it."""

    url: str
    named_by: str
    login: Login | None = None


def choose_repository(
    environment: Mapping[str, str], *, option: str | None = None, conf: str | None = None
) -> Repository:
    """Return the repository that jars come from.

    In this order: `--repository`, `spark.jars.repositories` of the pipeline (`conf`), the
    environment variable, the mirror of Maven's own settings, and the one that the Ivy in Spark's
    jars resolves `--packages` from, so a Spark that was built for another repository brings it
    along. Raises `InvalidInput` for what is no URL, or a login in clear where every user of the
    machine could read it; `MachineLacks` without Spark, or where Spark names no repository.
    """
    settings = read_settings(environment)
    if option:
        return _named(option, "--repository", environment, settings)
    if conf and (first := conf.split(",")[0].strip()):
        return _named(first, REPOSITORY_PROPERTY, environment, settings)
    if configured := environment.get(REPOSITORY_VARIABLE):
        return _named(configured, REPOSITORY_VARIABLE, environment, settings)
    if mirror := settings.mirror(environment):
        named_by = f"the mirror `{mirror.id}` of `{settings.path}`"
        return _parsed(mirror.url, named_by, settings.login(mirror.id, environment))
    return Repository(spark_repository(find_spark(environment).home), "Spark")


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


def _named(
    given: str, named_by: str, environment: Mapping[str, str], settings: MavenSettings
) -> Repository:
    if named_by == "--repository" and _literal_password(given):
        raise InvalidInput(
            "`--repository` has a password in it, which every user of this machine can read",
            hint=f"name variables, in single quotes: 'https://${{USER}}:${{PASSWORD}}@…'; or use "
            f"{REPOSITORY_VARIABLE}, or a <server> of Maven's settings.xml",
        )
    filled, unfilled = fill(given, environment)
    if unfilled:
        raise InvalidInput(f"{named_by}: {unfilled[0].message}", hint=unfilled[0].hint)
    found = _parsed(filled, named_by, None)
    return replace(found, login=found.login or settings.login_of_url(found.url, environment))


def _parsed(text: str, named_by: str, login: Login | None) -> Repository:
    """Take a URL apart; a login of its own wins over `login`."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme == "file" or (parts.scheme in ("http", "https") and parts.hostname)
    except ValueError:
        usable = None
    if not usable:
        # Not shown: what is no URL may be a password.
        raise InvalidInput(
            f"{named_by} is not a URL of a Maven repository",
            hint="write it like `https://repository.example.com/maven2`, or `file:///a/folder`",
        )
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or colon:
        login = Login(unquote(user), unquote(password))
    return Repository(without_login(text).rstrip("/"), named_by, login)


def _literal_password(given: str) -> bool:
    password = given.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return bool(re.sub(r"\$\{[A-Za-z_]\w*\}", "", password))
