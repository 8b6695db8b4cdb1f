"""Jars into the cache: found on this machine or downloaded, each by one process at a time."""

from __future__ import annotations

import http.client
import shutil
import ssl
import threading
import urllib.error
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lakeload.machine.cache import DAYS, finish, mark_used, only_maker, remove_unused
from lakeload.machine.jars.download import PAUSES, BrokenOff, NotWritten, download, proxy_of
from lakeload.machine.jars.pins import JARS, SETS, Jar, digest, is_intact, look_at, pinned
from lakeload.machine.jars.repository import (
    REPOSITORY_VARIABLE,
    Repository,
    choose_repository,
    read_settings,
)
from lakeload_jobs.contract.errors import MachineNotReady

_AT_ONCE = 4


@dataclass(frozen=True)
class Origin:
    """Where jars may come from. `folder` alone, where it is given: then there is no network."""

    folder: Path | None = None
    repository: str | None = None
    """What `--repository` says."""
    conf: str | None = None
    """What the pipeline's `spark.jars.repositories` says."""


class Listener:
    """Callbacks that report how a fetch goes. Called from several threads; these ignore it."""

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        """These jars are lacking, and `where` they are looked for."""

    def at(self, jar: Jar, done: int) -> None:
        """So many bytes of the jar are there."""

    def end(self, jar: Jar, how: str) -> None:
        """The jar is in the cache; `how` it came there, such as `downloaded`."""

    def say(self, text: str) -> None:
        """Something a user should know."""


_SILENCE = Listener()


class _Stopped(Exception):
    """Another jar failed, or the user has had enough."""


def fetch(
    jars: Sequence[Jar],
    folder: Path,
    environment: Mapping[str, str],
    *,
    origin: Origin = Origin(),
    listener: Listener = _SILENCE,
    pauses: tuple[float, ...] = PAUSES,
) -> tuple[Path, ...]:
    """Return the files of `jars` in `folder`, after fetching those that are missing or broken.

    Several processes may do so at once: a file appears whole, under its name, or not at all, and
    one of them downloads it. What was broken is kept as `NAME.broken`. Jars of other versions that
    have not been used for a long time are removed where new ones come. Raises `MachineNotReady`
    naming what to do when a jar cannot be had, and what `choose_repository` raises.
    """
    for jar in jars:
        mark_used(folder / jar.file_name)
    lacking = [jar for jar in jars if not is_intact(jar, folder)]
    if lacking:
        work = _Work(folder, environment, origin, listener, pauses)
        work.run(lacking)
    return tuple(folder / jar.file_name for jar in jars)


class _Work:
    """One fetch: a few jars at a time, ended by the first that cannot be had."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        origin: Origin,
        listener: Listener,
        pauses: tuple[float, ...],
    ) -> None:
        self._folder = folder
        self._listener = listener
        self._pauses = pauses
        self._over = threading.Event()
        self._repository: Repository | None = None
        self._offline = origin.folder
        if origin.folder is None:
            self._repository = choose_repository(
                environment, option=origin.repository, conf=origin.conf
            )
        self._places = _places(self._repository, origin.folder, environment)

    def run(self, jars: Sequence[Jar]) -> None:
        where = self._repository.url if self._repository else str(self._offline)
        self._listener.begin(jars, where)
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="jars")
        futures = [pool.submit(self._obtain, jar) for jar in jars]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            # Also for Ctrl-C: what is there of a file stays for the next time.
            self._over.set()
            pool.shutdown(cancel_futures=True)
        failures = [future.exception() for future in futures if not future.cancelled()]
        for failure in failures:
            if failure is not None and not isinstance(failure, _Stopped):
                raise failure
        keep = {jar.file_name for jar in (*jars, *pinned(*SETS))}
        for path in remove_unused(self._folder, "*.jar", ".*.jar.part", keep=keep):
            self._listener.say(f"`{path.name}` was not used for {DAYS} days: removed")

    def _obtain(self, jar: Jar) -> None:
        part = self._folder / f".{jar.file_name}.part"
        said: list[bool] = []

        def waiting() -> None:
            self._check()
            if not said:
                self._listener.say(f"another process is fetching `{jar.file_name}`: waiting for it")
                said.append(True)

        try:
            with only_maker(part, waiting) as file:
                try:
                    self._listener.end(jar, self._settle(jar, part, file))
                finally:
                    if file.seek(0, 2) == 0:
                        part.unlink(missing_ok=True)
        except (OSError, NotWritten) as error:
            cause = error.__cause__ if isinstance(error, NotWritten) else error
            reason = cause.strerror if isinstance(cause, OSError) else None
            raise MachineNotReady(
                f"writing the jar `{jar.file_name}` into `{self._folder}` failed: {reason}",
                hint="set LAKELOAD_CACHE_DIR to a folder on a writable disk",
            ) from error

    def _settle(self, jar: Jar, part: Path, file: BinaryIO) -> str:
        """Put the jar in its place, alone with it; return how it came."""
        if is_intact(jar, self._folder):
            part.unlink()
            return "fetched by another process"
        how = self._fill(jar, part, file)
        self._keep_broken(jar)
        finish(file, part, self._folder / jar.file_name)
        return how

    def _fill(self, jar: Jar, part: Path, file: BinaryIO) -> str:
        """Bring the pinned bytes into the unfinished file; return how."""
        for place in self._places:
            for candidate in (place / jar.path, place / jar.file_name):
                if _copied(candidate, jar, part, file):
                    return f"copied from `{place}`"
        if self._repository is None or urlsplit(self._repository.url).scheme == "file":
            raise self._not_in_places(jar)
        resumed = file.seek(0, 2) > 0
        self._download(jar, file, self._repository)
        if resumed and digest(part) != jar.sha256:
            # Its beginning may be of another content than its end.
            file.truncate(0)
            self._download(jar, file, self._repository)
        if (found := digest(part)) == jar.sha256:
            return "downloaded"
        kept = self._set_aside(part, jar)
        hint = (
            f"the download was kept as `{kept}`; it may be an error page of a proxy, or the "
            f"repository has changed the file. {ways_out(jar, self._folder)}"
        )
        raise _other_content(f"{self._repository.url}/{jar.path}", found, jar, hint)

    def _download(self, jar: Jar, file: BinaryIO, repository: Repository) -> None:
        url = f"{repository.url}/{jar.path}"

        def on_bytes(done: int) -> None:
            self._check()
            self._listener.at(jar, done)

        try:
            download(url, repository.login, file, jar.size, on_bytes=on_bytes, pauses=self._pauses)
        except (OSError, http.client.HTTPException, BrokenOff) as error:
            raise unreachable(error, url, repository, jar, self._folder) from error

    def _check(self) -> None:
        if self._over.is_set():
            raise _Stopped

    def _keep_broken(self, jar: Jar) -> None:
        state = look_at(jar, self._folder)
        if state.state == "broken":
            kept = self._set_aside(state.path, jar)
            self._listener.say(
                f"`{jar.file_name}` in the cache had the SHA-256 {state.found}, and {jar.sha256} "
                f"was expected: fetched again; the old file is now `{kept}`"
            )

    def _set_aside(self, path: Path, jar: Jar) -> Path:
        return path.replace(self._folder / f"{jar.file_name}.broken")

    def _not_in_places(self, jar: Jar) -> MachineNotReady:
        place = self._places[0]
        for path in (place / jar.path, place / jar.file_name):
            if path.is_file():
                return _other_content(path, digest(path), jar, ways_out(jar, self._folder))
        return MachineNotReady(
            f"`{jar.file_name}` ({jar.coordinates}) is not in `{place}`",
            hint="the folder needs the jars themselves, or a Maven repository's folders; "
            "`lakeload jars list` names them all",
        )


def _other_content(place: object, found: str, jar: Jar, hint: str) -> MachineNotReady:
    return MachineNotReady(
        f"`{place}` has the SHA-256 {found}, and {jar.sha256} is expected", hint=hint
    )


def _places(
    repository: Repository | None, offline: Path | None, environment: Mapping[str, str]
) -> tuple[Path, ...]:
    """Return the folders of this machine that may hold jars: the one that was named first."""
    if offline is not None:
        return (offline, offline / JARS)
    local = read_settings(environment).local_repository
    if repository is not None and urlsplit(repository.url).scheme == "file":
        return (Path(url2pathname(urlsplit(repository.url).path)), local)
    return (local,)


def _copied(source: Path, jar: Jar, part: Path, file: BinaryIO) -> bool:
    """Copy a file of this machine if it is what is pinned."""
    try:
        if source.stat().st_size != jar.size or digest(source) != jar.sha256:
            return False
        content = source.open("rb")
    except OSError:
        return False
    with content:
        file.truncate(0)
        file.seek(0)
        shutil.copyfileobj(content, file)
    return digest(part) == jar.sha256


def unreachable(
    error: Exception, url: str, repository: Repository, jar: Jar, folder: Path
) -> MachineNotReady:
    """Say what a repository, or the way to it, answered."""
    proxy = proxy_of(url)
    through = f" through the proxy `{proxy}`" if proxy else ""
    what = f"fetching `{url}`{through} failed: {_reason(error)}"
    code = error.code if isinstance(error, urllib.error.HTTPError) else 0
    if code in (401, 403, 407):
        login = "its login was rejected" if repository.login else "it may need a login"
        hint = (
            f"the repository is named by {repository.named_by}, and {login}: give one in the URL "
            f"of {REPOSITORY_VARIABLE} or as a <server> of Maven's settings.xml"
        )
        return MachineNotReady(what, hint=f"{hint}. {ways_out(jar, folder)}")
    if code == 404:
        hint = f"is {repository.named_by} the base URL of a repository that has {jar.coordinates}? "
        return MachineNotReady(what, hint=hint + ways_out(jar, folder))
    return MachineNotReady(what, hint=ways_out(jar, folder, proxy=proxy))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, OSError):
        return reason.strerror or str(reason) or type(reason).__name__
    return str(reason) or type(reason).__name__


def ways_out(jar: Jar, folder: Path, *, proxy: str | None = None) -> str:
    """The three ways to have a jar after all."""
    network = "check the proxy" if proxy else "set HTTPS_PROXY if you need a proxy"
    return (
        f"1. {network}; 2. name another repository in {REPOSITORY_VARIABLE} or as a mirror in "
        f"Maven's settings.xml; 3. copy `{jar.file_name}` ({jar.coordinates}) and the other "
        "jars from a machine that has them, with `lakeload jars fetch --from DIR`, or put "
        f"them into `{folder}`"
    )
