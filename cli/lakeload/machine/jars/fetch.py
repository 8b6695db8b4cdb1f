"""Jars into the cache: found on this machine or downloaded, each by one process at a time."""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lakeload.machine.cache.cleanup import DAYS, mark_used, remove_unused
from lakeload.machine.cache.files import finish, only_maker
from lakeload.machine.jars.download import PAUSES, BrokenOff, NotWritten, download
from lakeload.machine.jars.failures import unreachable, ways_out
from lakeload.machine.jars.listener import Listener, Silence
from lakeload.machine.jars.maven_settings import read_settings
from lakeload.machine.jars.pins import JARS, SETS, Jar, digest, is_intact, look_at, pinned
from lakeload.machine.jars.repository import Repository, choose_repository
from lakeload_jobs.contract.errors import MachineLacks

_AT_ONCE = 4


@dataclass(frozen=True)
class Origin:
    """Where jars may come from. `folder` alone, where it is given: then there is no network."""

    folder: Path | None = None
    repository: str | None = None
    """What `--repository` says."""
    conf: str | None = None
    """What the pipeline's `spark.jars.repositories` says."""


class _Stopped(Exception):
    """Another jar failed, or the user has had enough."""


def fetch(
    jars: Sequence[Jar],
    folder: Path,
    environment: Mapping[str, str],
    *,
    origin: Origin = Origin(),
    listener: Listener | None = None,
    pauses: tuple[float, ...] = PAUSES,
) -> tuple[Path, ...]:
    """Return the files of `jars` in `folder`, after fetching those that are missing or broken.

    Several processes may do so at once: a file appears whole, under its name, or not at all, and
    one of them downloads it. What was broken is kept as `NAME.broken`. Jars of other versions that
    nobody has used for long are removed where new ones come. Raises `MachineLacks` naming
    what to do when a jar cannot be had, and what `choose_repository` raises.
    """
    for jar in jars:
        mark_used(folder / jar.file_name)
    lacking = [jar for jar in jars if not is_intact(jar, folder)]
    if lacking:
        work = _Work(folder, environment, origin, listener or Silence(), pauses)
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
            raise self._unwritable(jar, cause) from error

    def _settle(self, jar: Jar, part: Path, file: BinaryIO) -> str:
        """Put the jar in its place, alone with it; return how it came."""
        if is_intact(jar, self._folder):
            part.unlink()
            return "fetched by another process"
        how = self._fill(jar, part, file)
        self._set_broken_aside(jar)
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
        self._download(jar, file)
        if digest(part) != jar.sha256 and resumed:
            # Its beginning may be of another content than its end.
            file.truncate(0)
            self._download(jar, file)
        if (found := digest(part)) != jar.sha256:
            raise self._other_content(jar, part, found)
        return "downloaded"

    def _download(self, jar: Jar, file: BinaryIO) -> None:
        assert self._repository is not None  # noqa: S101 - without one nothing is downloaded
        url = f"{self._repository.url}/{jar.path}"

        def seen(done: int) -> None:
            self._check()
            self._listener.at(jar, done)

        try:
            download(url, self._repository.login, file, jar.size, seen=seen, pauses=self._pauses)
        except (OSError, http.client.HTTPException, BrokenOff) as error:
            raise unreachable(error, url, self._repository, jar, self._folder) from error

    def _check(self) -> None:
        if self._over.is_set():
            raise _Stopped

    def _set_broken_aside(self, jar: Jar) -> None:
        state = look_at(jar, self._folder)
        if state.state != "broken":
            return
        aside = self._folder / f"{jar.file_name}.broken"
        state.path.replace(aside)
        self._listener.say(
            f"`{jar.file_name}` in the cache had the SHA-256 {state.found}, and {jar.sha256} was "
            f"expected: fetched again; what was there is now `{aside}`"
        )

    def _other_content(self, jar: Jar, part: Path, found: str) -> MachineLacks:
        assert self._repository is not None  # noqa: S101 - it came from there
        aside = self._folder / f"{jar.file_name}.broken"
        part.replace(aside)
        return MachineLacks(
            f"`{self._repository.url}/{jar.path}` has the SHA-256 {found}, and {jar.sha256} is "
            "expected",
            hint=f"what came is in `{aside}`: a page of a proxy, or a repository that changes "
            f"files? {ways_out(jar, self._folder)}",
        )

    def _not_in_places(self, jar: Jar) -> MachineLacks:
        place = self._places[0]
        wrong = [c for c in (place / jar.path, place / jar.file_name) if c.is_file()]
        if wrong:
            return MachineLacks(
                f"`{wrong[0]}` has the SHA-256 {digest(wrong[0])}, and {jar.sha256} is expected",
                hint=ways_out(jar, self._folder),
            )
        return MachineLacks(
            f"`{jar.file_name}` ({jar.coordinates}) is not in `{place}`",
            hint="the folder needs the jars themselves, or a Maven repository's folders; "
            "`lakeload jars list` names them all",
        )

    def _unwritable(self, jar: Jar, cause: BaseException | None) -> MachineLacks:
        reason = cause.strerror if isinstance(cause, OSError) else None
        return MachineLacks(
            f"writing the jar `{jar.file_name}` into `{self._folder}` failed: {reason}",
            hint="set LAKELOAD_CACHE_DIR to a folder on a disk that can be written to",
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
