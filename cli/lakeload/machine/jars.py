"""The jars that Spark does not bring: pinned in jars.toml, fetched once, checked each time.

Nothing else decides which code runs beside the data, so a file counts only with the SHA-256 that
is written down here, wherever it came from.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import tomllib
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakeload.machine.maven import REPOSITORY_VARIABLE, repository
from lakeload_jobs.contract.errors import MachineLacks
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.rules.input_files import is_s3

_AT_ONCE = 4
_SECONDS = 30.0
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Jar:
    """One artifact of Maven, and the SHA-256 (hex) of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of its file, in a repository and in the cache."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where every Maven repository has it, relative to its base URL."""
        folder = self.group.replace(".", "/")
        return f"{folder}/{self.artifact}/{self.version}/{self.file_name}"


def pinned(*features: str) -> tuple[Jar, ...]:
    """Return the jars of the named features (`s3`, `avro`), in the order they are pinned."""
    text = resources.files("lakeload.machine").joinpath("jars.toml").read_text("utf-8")
    table = tomllib.loads(text)
    jars = []
    for feature in features:
        for coordinates, sha256 in table[feature].items():
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, sha256))
    return tuple(jars)


def features_of(inputs: Iterable[FilesInput]) -> tuple[str, ...]:
    """Return which features the inputs of tables need, each once, sorted."""
    found = set()
    for given in inputs:
        if given.format == "AVRO":
            found.add("avro")
        if any(is_s3(path) for path in given.paths):
            found.add("s3")
    return tuple(sorted(found))


def fetch(
    jars: Sequence[Jar],
    folder: Path,
    environment: Mapping[str, str],
    *,
    notify: Callable[[str], None] = lambda text: None,
) -> tuple[Path, ...]:
    """Return the files of `jars` in `folder`, after fetching those that are missing or damaged.

    Several processes may do so at once: a file appears whole, under its name, or not at all.
    Raises `MachineLacks` naming the folder and what to put there when a jar cannot be had, and
    what `machine.maven.repository` raises.
    """
    lacking = [jar for jar in jars if not is_intact(jar, folder)]
    if lacking:
        base = repository(environment)
        notify(f"fetching {len(lacking)} jars for Spark from {_shown(base)}, once")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="jars") as pool:
            list(pool.map(lambda jar: _fetch(jar, folder, base), lacking))
    return tuple(folder / jar.file_name for jar in jars)


def is_intact(jar: Jar, folder: Path) -> bool:
    """Whether the jar is in `folder` with its pinned content."""
    try:
        with (folder / jar.file_name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def _fetch(jar: Jar, folder: Path, base: str) -> None:
    url = f"{base}/{jar.path}"
    part: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{jar.file_name}.", suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            found = _download(url, file.write)
        if found != jar.sha256:
            raise MachineLacks(
                f"`{_shown(url)}` has the SHA-256 {found}, and {jar.sha256} is expected",
                hint=f"is there something between here and the repository that changes files? "
                f"{_by_hand(jar, folder)}",
            )
        part.chmod(0o644)
        part.replace(folder / jar.file_name)
    except http.client.HTTPException as error:
        raise MachineLacks(
            f"fetching `{_shown(url)}` failed: {type(error).__name__}", hint=_by_hand(jar, folder)
        ) from error
    except OSError as error:
        raise _failure(error, jar, folder, url) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _download(url: str, write: Callable[[bytes], object]) -> str:
    """Hand the content over in pieces and return its SHA-256; proxies of the environment count."""
    digest = hashlib.sha256()
    request = urllib.request.Request(_shown(url), headers={"User-Agent": "lakeload"})  # noqa: S310
    user = unquote(urlsplit(url).netloc.rpartition("@")[0])
    if user:
        request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
        while piece := answer.read(_CHUNK):
            digest.update(piece)
            write(piece)
    return digest.hexdigest()


def _failure(error: OSError, jar: Jar, folder: Path, url: str) -> MachineLacks:
    """URLError and HTTPError are OSErrors too."""
    if isinstance(error, urllib.error.HTTPError):
        what = f"fetching `{_shown(url)}` failed: HTTP {error.code}"
    elif isinstance(error, urllib.error.URLError):
        reason = error.reason
        text = reason.strerror if isinstance(reason, OSError) else str(reason)
        what = f"fetching `{_shown(url)}` failed: {text or type(reason).__name__}"
    elif isinstance(error, TimeoutError | ConnectionError):
        what = f"fetching `{_shown(url)}` failed: {error.strerror or type(error).__name__}"
    else:
        return MachineLacks(
            f"writing the jar `{jar.file_name}` into `{folder}` failed: {error.strerror}",
            hint="set LAKELOAD_CACHE_DIR to a folder that can be written to",
        )
    return MachineLacks(what, hint=_by_hand(jar, folder))


def _by_hand(jar: Jar, folder: Path) -> str:
    return (
        f"name another repository in {REPOSITORY_VARIABLE}, or put `{jar.file_name}` "
        f"({jar.group}:{jar.artifact}:{jar.version}, and the others it goes with) into `{folder}`"
    )


def _shown(url: str) -> str:
    """The URL without user and password, which a private repository may have in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
