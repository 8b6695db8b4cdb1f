"""spark-submit as a process group: its command line, started, followed, stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Self

from lakeload.launch.outcome import Ending, Observed
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.scratch import make_scratch, remove_scratch
from lakeload.launch.stop import StopRequests
from lakeload.runtimes import Submission, runtime_of
from lakeload_jobs.contract.codec import CodecError, from_json
from lakeload_jobs.contract.errors import MachineNotReady
from lakeload_jobs.contract.events import Event
from lakeload_jobs.sources.files.files_in_use import FOLDER

LONGEST_LINE = 1024 * 1024
CHUNK = 1024 * 1024


class EventTail:
    """The events written since the last look; half a line waits for its other half."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False
        self.unreadable = 0
        """Lines that are no event of this contract: counted, never fatal."""

    def read(self) -> list[Event]:
        """Return the events that have arrived, at most `CHUNK` bytes of them."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return []
        *lines, self._rest = (self._rest + self._file.read(CHUNK)).split(b"\n")
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        if len(self._rest) > LONGEST_LINE:
            self.unreadable += not self._skipping
            self._rest, self._skipping = b"", True
        return [event for line in lines if line.strip() and (event := self._parse(line))]

    def drain(self) -> list[Event]:
        """Return everything that is left, once the writer has ended."""
        events = []
        while True:
            before = self._file.tell() if self._file else 0
            events += self.read()
            if self._file is None or self._file.tell() == before:
                break
        # A killed driver may leave a last line without its line break.
        if self._rest.strip() and not self._skipping:
            last = self._parse(self._rest)
            events += [last] if last else []
            self._rest = b""
        return events

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def _parse(self, line: bytes) -> Event | None:
        try:
            return from_json(Event, json.loads(line))
        except (ValueError, CodecError, RecursionError):
            self.unreadable += 1
            return None


LIMIT = 64 * 1024 * 1024
HEAD = 1024 * 1024
TAIL = 1024 * 1024
_TRIES = 10


def open_log(path: Path) -> int:
    """Create the log and return a descriptor that always appends, so that `trim` may shorten it.

    It is locked as long as a process has it: that of Java, even where the command was killed.
    """
    log = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        fcntl.flock(log, fcntl.LOCK_EX)
    return log


def trim(path: Path, limit: int = LIMIT, head: int = HEAD, tail: int = TAIL) -> bool:
    """Cut the middle out of a log beyond `limit` bytes while others go on appending to it.

    A file instead of a pipe keeps the job independent of whoever reads its output, and its size
    is looked at ten times a second: only a flood faster than `limit` in that time passes it, and
    only until the next look. What is written between reading the tail and cutting is lost, so the
    tail is read again while the log still grows.
    """
    size = path.stat().st_size
    if size <= limit:
        return False
    last = read_tail(path, tail)
    for _ in range(_TRIES):
        read, size = size, path.stat().st_size
        if read == size:
            break
        last = read_tail(path, tail)
    with path.open("r+b") as log:
        log.truncate(head)
    with path.open("ab") as log:
        log.write(b"\n[lakeload cut the middle of this log, which had grown too long]\n" + last)
    return True


def read_tail(path: Path, size: int = TAIL) -> bytes:
    """Return the last `size` bytes, or nothing when there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - size))
            return log.read(size)
    except FileNotFoundError:
        return b""


def read_log(path: Path) -> str:
    """Return the first and the last part of the log as text, for finding a cause in it."""
    try:
        with path.open("rb") as log:
            first = log.read(HEAD)
    except FileNotFoundError:
        return ""
    size = path.stat().st_size
    rest = read_tail(path, min(TAIL, max(0, size - len(first))))
    return (first + rest).decode("utf-8", errors="replace")


def members(session: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the ids of the living processes of a session.

    pyspark's worker daemon makes a process group of its own, so the group alone would miss it.
    A zombie nobody reaps is not living. Where there is no /proc, the group stands for the session.
    """
    # macOS has no /proc; the process group is the best approximation there.
    if not sys.platform.startswith("linux"):
        return [session] if _group_lives(session) else []
    living = []
    for entry in proc.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        # The process ended between the listing and this read.
        except OSError:
            continue
        # The name before the last parenthesis may hold anything.
        state, _, _, process_session = stat.rpartition(")")[2].split()[:4]
        if int(process_session) == session and state not in ("Z", "X"):
            living.append(int(entry.name))
    return living


def signal_group(session: int, number: signal.Signals) -> None:
    """Signal the process group of spark-submit: the JVM and the Python driver."""
    try:
        os.killpg(session, number)
    except ProcessLookupError:
        return


def kill_session(session: int) -> None:
    """Kill whatever is left of the session, in whichever group."""
    # The group first: spark-submit, the JVM and the driver cannot start new processes then.
    signal_group(session, signal.SIGKILL)
    for process in members(session):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


POLL_SECONDS = 0.1


@dataclass(frozen=True)
class StopTimeouts:
    """Seconds to wait for an orderly end before the next, harder measure."""

    term: float = 10.0
    """After SIGTERM, for the driver to abort its uploads; then SIGKILL."""
    survivors: float = 10.0
    """After spark-submit died, for the Python driver to notice and write its result."""
    stragglers: float = 2.0
    """After spark-submit ended well, for whatever it left behind."""


PATIENCE = StopTimeouts()


class Running:
    """A started spark-submit. Leaving the `with` block always leaves no process behind."""

    def __init__(
        self,
        submission: Submission,
        folder: RunFolder,
        stop: StopRequests,
        patience: StopTimeouts = PATIENCE,
    ) -> None:
        self._submission = submission
        self._folder = folder
        self._stop = stop
        self._patience = patience
        self._tail = EventTail(folder.events)
        self._killed = False
        self.observed = Observed()

    def __enter__(self) -> Self:
        """Start it. Raises `MachineNotReady` when the operating system refuses."""
        # A signal between fork and bookkeeping would leave a JVM without a parent.
        self._stop.hold()
        try:
            self._process = start(self._submission, self._folder)
        except MachineNotReady:
            self._folder.forget_properties()
            remove_scratch(self._folder)
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        # Whatever happened above, no JVM may keep running and writing.
        if members(self._process.pid):
            kill_session(self._process.pid)
        self._process.wait()
        # The file has settings of the destination; nothing needs it any more.
        self._folder.forget_properties()
        remove_scratch(self._folder)
        self._tail.close()

    def events(self) -> Iterator[Event]:
        """Yield what the driver says until nothing of it lives; then `ending` is known."""
        # Events come from a file, so the driver never blocks on a reader that is gone.
        while self._process.poll() is None and self._stop.requested is None:
            yield from self._look()
            time.sleep(POLL_SECONDS)
        if self._stop.requested is not None:
            # SIGTERM lets the driver abort its uploads; SIGKILL follows after the time limit.
            signal_group(self._process.pid, signal.SIGTERM)
            yield self._stopping(self._stop.requested)
            yield from self._wait_for_end(self._patience.term)
        else:
            # After a crash of the JVM the Python driver may still write its result.
            ended_well = self._process.returncode == 0
            patience = self._patience.stragglers if ended_well else self._patience.survivors
            yield from self._wait_for_end(patience)
        for event in self._tail.drain():
            yield self._seen(event)
        self._trim_log()

    @property
    def pid(self) -> int:
        """The id of spark-submit's process, which is also that of its session and group."""
        return self._process.pid

    @property
    def unreadable_events(self) -> int:
        """Lines among the events that were none."""
        return self._tail.unreadable

    @property
    def ending(self) -> Ending:
        """How spark-submit ended; meaningful after `events` is exhausted."""
        return Ending(self._process.wait(), self._stop.requested, self._killed)

    def _wait_for_end(self, seconds: float) -> Iterator[Event]:
        until = time.monotonic() + seconds
        while (self._process.poll() is None) or members(self._process.pid):
            # Out of time, or Ctrl-C a second time.
            if time.monotonic() > until or self._stop.impatient:
                self._killed = self._process.poll() is None
                kill_session(self._process.pid)
                self._process.wait()
                return
            yield from self._look()
            time.sleep(POLL_SECONDS)

    def _stopping(self, number: signal.Signals) -> Event:
        message = (
            f"stopping after {number.name}: the job finishes commits that have begun and gives up "
            "the rest; press Ctrl-C again to kill it"
        )
        return Event("note", datetime.now(UTC), level="info", message=message)

    def _look(self) -> Iterator[Event]:
        self._trim_log()
        for event in self._tail.read():
            yield self._seen(event)

    def _trim_log(self) -> None:
        # A full disk must not end a job that may have committed.
        with contextlib.suppress(OSError):
            trim(self._folder.log)

    def _seen(self, event: Event) -> Event:
        # The driver has read its settings by now.
        if event.kind == "opened":
            self._folder.forget_properties()
        self.observed.note(event)
        return event


_DROPPED = (
    "PYSPARK_DRIVER_PYTHON_OPTS",  # would start a notebook instead of the job
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",  # set when lakeload itself was started from a Spark driver
    "PYSPARK_GATEWAY_SECRET",
    "PYTHONSTARTUP",
)


@dataclass(frozen=True)
class Installation:
    """What of this machine a launch uses."""

    spark_home: Path
    java_home: Path
    python: Path
    package: Path
    """The zip of `lakeload_jobs`, for executors on other machines."""
    entry: Path
    """The script given to spark-submit."""
    load_spark_defaults: bool = False
    """Whether spark-defaults.conf of a Spark the user chose applies below our properties."""


def submission(
    installation: Installation,
    folder: RunFolder,
    *,
    master: str,
    pipeline: str,
    environment: Mapping[str, str],
    scratch: tuple[Path, ...] = (),
    user: str = "",
    jobs: Path | None = None,
) -> Submission:
    """Return how to start the job of `folder`, or those that arrive through the pipe `jobs`, with
    these scratch folders. `user` is a name for this process's user, where the system has none.

    Properties travel in a file: one given by `--conf` could be read by every user of the machine
    in the list of processes.
    """
    argv = [
        str(installation.spark_home / "bin" / "spark-submit"),
        *("--master", master),
        *("--name", f"lakeload:{pipeline}"),
        *("--properties-file", str(folder.properties)),
        *(["--load-spark-defaults"] if installation.load_spark_defaults else []),
        # spark-submit opens what is not called local, and logs in to Hadoop for that.
        *("--py-files", f"{'local:' if user else ''}{installation.package}"),
        str(installation.entry),
        str(jobs or folder.spec),
    ]
    variables = _environment(installation, environment)
    variables[FOLDER] = str(folder.files_in_use)
    if scratch:
        # It would win over our `spark.local.dir`.
        variables.pop("SPARK_LOCAL_DIRS", None)
        variables["TMPDIR"] = str(scratch[0])
    return Submission(runtime_of(master), tuple(argv), variables, scratch)


def spark_defaults(installation: Installation, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of spark-defaults.conf that apply below ours."""
    conf = Path(environment.get("SPARK_CONF_DIR") or installation.spark_home / "conf")
    file = conf / "spark-defaults.conf"
    if not installation.load_spark_defaults or not file.is_file():
        return {}
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    words = [re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines]
    return {pair[0]: pair[1] for pair in words if len(pair) == 2}


def start(submission: Submission, folder: RunFolder) -> subprocess.Popen[bytes]:
    """Start a job. Raises `MachineNotReady` when the operating system refuses."""
    handle = open_log(folder.log)
    try:
        # Under the log's lock, so that no other run takes the folders for those of a killed one.
        make_scratch(folder, submission.scratch)
        folder.files_in_use.mkdir(mode=0o700)
        return submission.runtime.start(submission, handle)
    except OSError as error:
        raise MachineNotReady(
            f"starting `{submission.argv[0]}` failed: {error.strerror}",
            hint="reinstall pyspark, or unset SPARK_HOME",
        ) from error
    finally:
        os.close(handle)


def _environment(installation: Installation, inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in inherited.items() if key not in _DROPPED}
    return {
        # Arrow's own allocator keeps a quarter more memory of what a reader has freed.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        # spark-submit first starts a JVM that only writes Java's command line.
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **kept,
        "SPARK_HOME": str(installation.spark_home),
        "JAVA_HOME": str(installation.java_home),
        "PYSPARK_PYTHON": str(installation.python),
        "PYSPARK_DRIVER_PYTHON": str(installation.python),
        # The driver's messages reach spark.log as they are written, also when it is killed.
        "PYTHONUNBUFFERED": "1",
    }
