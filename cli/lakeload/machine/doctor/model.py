"""Checks of the environment: their results, and the command that fixes one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lakeload.machine.local.java import USUAL_PLACES
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


@dataclass(frozen=True)
class Need:
    """What a document asks of the machine; without one, what a load usually needs."""

    file: str = ""
    """The document as it was named, for commands that take it too."""
    destination: DestinationSpec | None = None
    features: tuple[str, ...] = ()
    """Which jars are needed (`machine.jars.pins`)."""
    master: str = "local[*]"
    driver_memory: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


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


def export(name: str, value: str | Path) -> str:
    """Return the shell line that sets a variable."""
    return f"export {name}={shlex.quote(str(value))}"


def make_writable(folder: Path) -> str:
    """Return the line that makes a folder and gives it to this user."""
    quoted = shlex.quote(str(folder))
    return f'sudo mkdir -p {quoted} && sudo chown "$(id -u)" {quoted}'


def family(os_release: str) -> set[str]:
    """Return what /etc/os-release calls this system and those it is like."""
    values = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    return {values.get("ID", ""), *values.get("ID_LIKE", "").split()} - {""}


def set_clock(platform: str, os_release: str) -> str:
    """Return the command that sets this machine's clock by the network, once and from now on."""
    if platform == "darwin":
        return "sudo sntp -sS time.apple.com"
    names = family(os_release)
    if names & {"debian", "ubuntu"}:
        return "sudo apt-get install -y chrony && sudo chronyc makestep"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        install = "sudo dnf install -y chrony && sudo systemctl enable --now chronyd"
        return f"{install} && sudo chronyc makestep"
    if "alpine" in names:
        return "apk add chrony && chronyd -q 'pool pool.ntp.org iburst'"
    return "sudo timedatectl set-ntp true"


def python_command(platform: str, os_release: str) -> str:
    """Return the command that installs a Python which lakeload runs on."""
    if platform == "darwin":
        return "brew install python@3.13"
    names = family(os_release)
    if names & {"debian", "ubuntu"}:
        return "sudo apt-get update && sudo apt-get install -y python3 python3-venv"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        return "sudo dnf install -y python3.12"
    if "alpine" in names:
        return "apk add python3"
    return "install Python 3.11 to 3.14 from https://www.python.org/downloads/"


def install_bash(platform: str, os_release: str) -> str:
    """Return the command that installs bash, which Spark's scripts are written for."""
    if platform == "darwin":
        return "brew install bash"
    names = family(os_release)
    if "alpine" in names:
        return "apk add bash"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        return "sudo dnf install -y bash"
    return "sudo apt-get update && sudo apt-get install -y bash"
