"""Checks of the environment: their results, how they run, and the commands that fix things."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lakeload.data import read_toml
from lakeload.documents.extras import Extra
from lakeload.documents.named_files import NamedFiles
from lakeload.machine.java import USUAL_PLACES, install_command
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec


class CheckStatus(StrEnum):
    """What a finding means for a load. Only a problem stops one."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CheckResult:
    """One thing about this machine. `name` is stable: scripts may rely on it (docs/doctor.md).

    `found` is what there is, `why` what that means for a load, `command` the exact line that mends
    it, '' where no line can.
    """

    name: str
    status: CheckStatus
    found: str
    why: str = ""
    command: str = ""


def ok(name: str, found: str) -> CheckResult:
    """Return a finding that is in order."""
    return CheckResult(name, CheckStatus.OK, found)


def warning(name: str, found: str, why: str = "", command: str = "") -> CheckResult:
    """Return a finding that surprises, or may stop a load."""
    return CheckResult(name, CheckStatus.WARNING, found, why, command)


def problem(name: str, found: str, why: str = "", command: str = "") -> CheckResult:
    """Return a finding that stops a load."""
    return CheckResult(name, CheckStatus.PROBLEM, found, why, command)


def described(key: str, **values: str) -> CheckResult:
    """Return the finding that findings.toml describes, with these values in it."""
    found: dict[str, str] = read_toml(__package__, "findings.toml")[key]
    texts = {name: text.format(**values) for name, text in found.items()}
    status = CheckStatus(texts.pop("status", "warning"))
    return CheckResult(status=status, **texts)


@dataclass(frozen=True)
class Host:
    """The machine, as far as findings depend on it; tests hand over another one."""

    environment: Mapping[str, str]
    platform: str
    """As `sys.platform` says it."""
    os_release: str
    """The text of /etc/os-release, empty where there is none."""
    cache: Path
    """lakeload's cache folder."""
    runs: Path
    """The folder of run folders."""
    proc: Path = Path("/proc")
    cgroups: Path = Path("/sys/fs/cgroup")
    java_places: tuple[str, ...] = USUAL_PLACES

    def install(self, what: str) -> str:
        """Return the command that installs or sets `what` (install.toml) on this system."""
        return install_command(self.platform, self.os_release, what)


@dataclass(frozen=True)
class Need:
    """What a document asks of the machine; without one, what a load usually needs."""

    files: NamedFiles | None = None
    """The document as it was named, for commands that take it too."""
    destination: DestinationSpec | None = None
    features: tuple[str, ...] = ()
    """Which jars are needed (`machine.jars.pins`)."""
    master: str = "local[*]"
    driver_memory: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    references: tuple[SecretReference, ...] = ()
    """Secrets beside those of the destination's credentials."""
    extras: tuple[Extra, ...] = ()

    def command(self, name: str, *arguments: str) -> str:
        """Return the command line of a command about the same document, if there is one."""
        if self.files is None:
            return shlex.join(["lakeload", *name.split(), *arguments])
        return self.files.command(name, *arguments)


@dataclass(frozen=True)
class CheckContext:
    """Host and need, and how far the examination may go: `seconds` is for all of it."""

    host: Host
    need: Need
    offline: bool = False
    seconds: float = 5.0

    @property
    def environment(self) -> Mapping[str, str]:
        """The host's environment variables."""
        return self.host.environment


@dataclass(frozen=True)
class Check:
    """One examination, by the name of its findings.

    `silence` is the finding for one that takes too long, where that says something.
    """

    name: str
    look: Callable[[CheckContext], Iterable[CheckResult]]
    silence: Callable[[CheckContext], CheckResult] | None = None


@dataclass(frozen=True)
class DoctorReport:
    """All findings, in the order of the checks, and how long finding them took."""

    findings: tuple[CheckResult, ...]
    seconds: float

    def with_status(self, status: CheckStatus) -> tuple[CheckResult, ...]:
        """Return the findings of one status."""
        return tuple(finding for finding in self.findings if finding.status is status)

    @property
    def healthy(self) -> bool:
        """Whether nothing is a problem; warnings are none."""
        return not self.with_status(CheckStatus.PROBLEM)


def run_checks(context: CheckContext, checks: Sequence[Check]) -> DoctorReport:
    """Return every finding. All checks run at once; what takes longer than `context.seconds`,
    a name server or a disk that never answers, is given up and said. Raises `RuntimeError` for a
    check with a bug; its thread has told where.
    """
    started = time.monotonic()
    running = [_Running(check, context) for check in checks]
    findings = [finding for one in running for finding in one.findings(started + context.seconds)]
    return DoctorReport(tuple(findings), time.monotonic() - started)


class _Running:
    """One check under way, in a thread that the end of the program does not wait for."""

    def __init__(self, check: Check, context: CheckContext) -> None:
        self._check = check
        self._context = context
        self._found: list[CheckResult] = []
        self._complete = False
        name = f"doctor-{check.name}"
        self._thread = threading.Thread(target=self._look, name=name, daemon=True)
        self._thread.start()

    def findings(self, until: float) -> list[CheckResult]:
        """Return what was found until an instant of the monotonic clock."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            return [*self._found, self._silence()]
        if not self._complete:
            raise RuntimeError(f"the check {self._check.name} failed")
        return self._found

    def _look(self) -> None:
        """Collect the findings; what cannot be looked at is a finding too."""
        try:
            for finding in self._check.look(self._context):
                self._found.append(finding)
        except LakeloadError as error:
            self._found.append(self._unseen(error.message))
        except (OSError, ValueError, ImportError) as error:
            self._found.append(self._unseen(f"{type(error).__name__}: {error}"))
        self._complete = True

    def _silence(self) -> CheckResult:
        context = self._context
        if self._check.silence is not None:
            return self._check.silence(context)
        longer = ("--timeout", f"{context.seconds * 4:g}s")
        command = context.need.command("doctor", *longer)
        return self._unseen(f"no response within {context.seconds:g} s", command)

    def _unseen(self, why: str, command: str = "") -> CheckResult:
        return warning(self._check.name, "this could not be checked", why, command)


def export(name: str, value: str | Path) -> str:
    """Return the shell line that sets a variable."""
    return f"export {name}={shlex.quote(str(value))}"


def make_writable(folder: Path) -> str:
    """Return the line that makes a folder and gives it to this user."""
    quoted = shlex.quote(str(folder))
    return f'sudo mkdir -p {quoted} && sudo chown "$(id -u)" {quoted}'
