"""The Maven repository of the jars: the one that is named, else a mirror, else the one of Spark.

The rules of mirrors are those of Maven's guide to mirror settings: a mirror of exactly this
repository wins, else the first whose pattern matches.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakeload.config.document import fill
from lakeload.machine.jars.download import Login, without_login
from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady

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
    machine could read it; `MachineNotReady` without Spark, or where Spark names no repository.
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
    raise MachineNotReady(
        f"the Spark in `{home}` does not name a Maven repository",
        hint=f"name one in {REPOSITORY_VARIABLE}",
    )


def _named(
    given: str, named_by: str, environment: Mapping[str, str], settings: MavenSettings
) -> Repository:
    if named_by == "--repository" and _literal_password(given):
        raise InvalidInput(
            "`--repository` contains a password, which every user of this machine can read",
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


USUAL = "central"
"""The id that Maven gives to the repository it asks when nothing else is set."""


@dataclass(frozen=True)
class Mirror:
    """A repository that stands in for others. `of` is its `mirrorOf`."""

    id: str
    url: str
    of: str
    blocked: bool = False


@dataclass(frozen=True)
class _Server:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class MavenSettings:
    """What of settings.xml concerns us. Without the file: nothing, and Maven's usual folder."""

    path: Path
    local_repository: Path
    mirrors: tuple[Mirror, ...] = ()
    servers: Mapping[str, _Server] = field(default_factory=dict)

    def mirror(self, environment: Mapping[str, str], repository: str = USUAL) -> Mirror | None:
        """Return the mirror of a remote repository, its URL filled.

        Raises `MachineNotReady` where it is blocked, `InvalidInput` where a variable is not set.
        """
        exact = [item for item in self.mirrors if item.of == repository]
        matching = exact or [item for item in self.mirrors if _matches(item.of, repository)]
        if not matching:
            return None
        if matching[0].blocked:
            raise MachineNotReady(
                f"the mirror `{matching[0].id}` of `{self.path}` blocks the download of jars",
                hint="fetch from a folder with `lakeload jars fetch --from DIR`, or name another "
                "repository with `--repository`",
            )
        url = _filled(matching[0].url, environment, f"`{self.path}`").rstrip("/")
        return replace(matching[0], url=url)

    def login(self, server: str, environment: Mapping[str, str]) -> Login | None:
        """Return the login of a server, references filled. Raises `InvalidInput` where none is."""
        found = self.servers.get(server)
        if found is None:
            return None
        if re.fullmatch(r"[^{]*\{.+\}.*", re.sub(r"\$\{[^}]*\}", "", found.password)):
            raise InvalidInput(
                f"the password of the server `{server}` in `{self.path}` is encrypted by Maven",
                hint="write a reference instead: <password>${env.NAME}</password>",
            )
        where = f"the server `{server}` in `{self.path}`"
        return Login(
            _filled(found.user, environment, where), _filled(found.password, environment, where)
        )

    def login_of_url(self, url: str, environment: Mapping[str, str]) -> Login | None:
        """Return the login of the mirror that has this URL."""
        for mirror in self.mirrors:
            if mirror.url.rstrip("/") == url:
                return self.login(mirror.id, environment)
        return None


def read_settings(environment: Mapping[str, str]) -> MavenSettings:
    """Read `~/.m2/settings.xml`. Raises `InvalidInput` where it is there and cannot be read."""
    home = Path(environment.get("HOME") or Path.home())
    path, local = home / ".m2" / "settings.xml", home / ".m2" / "repository"
    try:
        root = ET.fromstring(path.read_bytes())  # noqa: S314 - the user's own file
    except (FileNotFoundError, NotADirectoryError):
        return MavenSettings(path, local)
    except (OSError, ET.ParseError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(
            f"Maven's settings in `{path}` cannot be read: {reason}",
            hint="fix the file, or name a repository with LAKELOAD_MAVEN_REPOSITORY",
        ) from error
    for element in root.iter():
        # Each version of the schema has a namespace of its own, and all mean the same.
        element.tag = str(element.tag).rpartition("}")[2]
    own = _filled(_text(root, "localRepository"), environment, f"`{path}`")
    return MavenSettings(
        path,
        Path(own) if own else local,
        tuple(
            Mirror(
                _text(item, "id"),
                _text(item, "url"),
                _text(item, "mirrorOf"),
                _text(item, "blocked") == "true",
            )
            for item in root.iterfind("mirrors/mirror")
        ),
        {
            _text(item, "id"): _Server(_text(item, "username"), _text(item, "password"))
            for item in root.iterfind("servers/server")
        },
    )


def _matches(patterns: str, repository: str) -> bool:
    """Whether a list such as `external:*,!central` takes in a repository reached by HTTPS.

    Its name decides, with or without `!`, whichever comes first; else any wildcard does.
    """
    listed = [part.strip() for part in patterns.split(",")]
    for pattern in listed:
        if pattern in (repository, f"!{repository}"):
            return pattern == repository
    return "*" in listed or "external:*" in listed


def _filled(text: str, environment: Mapping[str, str], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        found = environment.get("HOME" if name == "user.home" else name.removeprefix("env."))
        if found is None:
            raise InvalidInput(
                f"{where} names the environment variable `{name.removeprefix('env.')}`, which is "
                "not set",
                hint=f"export {name.removeprefix('env.')}=… before running lakeload",
            )
        return found

    return re.sub(r"\$\{(env\.\w+|user\.home)\}", value, text)


def _text(element: ET.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
