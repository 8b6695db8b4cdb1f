"""What is examined, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lakeload.machine.local.java import USUAL_PLACES
from lakeload_jobs.contract.spec import DestinationSpec


class Status(StrEnum):
    """What a finding means for a load. Only a problem stops one."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One thing about this machine. `name` is stable: scripts may rely on it (docs/doctor.md).

    `found` is what there is, `why` what that means for a load, `command` the exact line that mends
    it, '' where no line can.
    """

    name: str
    status: Status
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
class Patient:
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
    look: Callable[[Patient], Iterable[Finding]]
    silence: Callable[[Patient], Finding] | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in the order of the checks, and how long finding them took."""

    findings: tuple[Finding, ...]
    seconds: float

    def with_status(self, status: Status) -> tuple[Finding, ...]:
        """Return the findings of one status."""
        return tuple(finding for finding in self.findings if finding.status is status)

    @property
    def healthy(self) -> bool:
        """Whether nothing is a problem; warnings are none."""
        return not self.with_status(Status.PROBLEM)
