"""Checks of the environment: their results, how they run, and the commands that fix things."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lakeload.checks import CheckStatus, Verdict, in_background
from lakeload.data import read_toml
from lakeload.documents.extras import Extra
from lakeload.documents.named_files import NamedFiles
from lakeload.machine.java import USUAL_PLACES, install_command
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec


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
    return CheckResult(name, CheckStatus.PASSED, found)


def warning(name: str, found: str, why: str = "", command: str = "") -> CheckResult:
    """Return a finding that surprises, or may stop a load."""
    return CheckResult(name, CheckStatus.WARNING, found, why, command)


def problem(name: str, found: str, why: str = "", command: str = "") -> CheckResult:
    """Return a finding that stops a load."""
    return CheckResult(name, CheckStatus.FAILED, found, why, command)


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


def run_checks(context: CheckContext, checks: Sequence[Check]) -> Verdict[CheckResult]:
    """Return every finding. All checks run at once; what takes longer than `context.seconds`,
    a name server or a disk that never answers, is given up and said. Raises what a check with a
    bug raises.
    """
    started, results = time.monotonic(), list[CheckResult]()
    findings: list[list[CheckResult]] = [[] for _ in checks]
    running = [
        in_background(partial(_look, check, context, found), f"doctor-{check.name}")
        for check, found in zip(checks, findings, strict=True)
    ]
    for check, found, work in zip(checks, findings, running, strict=True):
        if wait((work,), max(0.0, started + context.seconds - time.monotonic())).done:
            work.result()
            results += found
        else:
            results += [*found, _silence(check, context)]
    return Verdict(tuple(results), time.monotonic() - started)


def _look(check: Check, context: CheckContext, found: list[CheckResult]) -> None:
    """Collect the findings; what cannot be looked at is a finding too."""
    try:
        for finding in check.look(context):
            found.append(finding)
    except LakeloadError as error:
        found.append(_unseen(check, error.message))
    except (OSError, ValueError, ImportError) as error:
        found.append(_unseen(check, f"{type(error).__name__}: {error}"))


def _silence(check: Check, context: CheckContext) -> CheckResult:
    if check.silence is not None:
        return check.silence(context)
    longer = ("--timeout", f"{context.seconds * 4:g}s")
    command = context.need.command("doctor", *longer)
    return _unseen(check, f"no response within {context.seconds:g} s", command)


def _unseen(check: Check, why: str, command: str = "") -> CheckResult:
    return warning(check.name, "this could not be checked", why, command)


def export(name: str, value: str | Path) -> str:
    """Return the shell line that sets a variable."""
    return f"export {name}={shlex.quote(str(value))}"


def make_writable(folder: Path) -> str:
    """Return the line that makes a folder and gives it to this user."""
    quoted = shlex.quote(str(folder))
    return f'sudo mkdir -p {quoted} && sudo chown "$(id -u)" {quoted}'
