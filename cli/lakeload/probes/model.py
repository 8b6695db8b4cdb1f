"""What a probe is, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakeload_jobs.contract.errors import LakeloadError, Refused


class Level(StrEnum):
    """What a failure means (DESIGN section 8)."""

    REQUIRED = "required"
    """`sync` cannot work."""
    USEFUL = "useful"
    """`sync` works; something around it does not. A warning."""
    SAFETY = "safety"
    """Everything works, for others too. A warning."""


class Status(StrEnum):
    """What became of a probe; a failure of a useful or safety probe is a warning."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class ProbeFailed(Refused):
    """AWS answered, and the answer is not what a load needs. `code` names the finding."""

    def __init__(self, message: str, *, code: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class BesideThePoint(LakeloadError):
    """A probe finds that it has nothing to ask here; it is skipped, and the message says why."""


@dataclass(frozen=True)
class Permission:
    """An IAM action and the ARN, or ARNs, that AWS checks it against."""

    action: str
    resource: str


@dataclass(frozen=True)
class Failure:
    """What AWS said and what to do about it. `code` and `status` are AWS's own where it answered,
    else the kind of failure and None. Causes are in order of likelihood."""

    message: str
    code: str
    status: int | None
    request_id: str | None
    causes: tuple[str, ...]
    hint: str | None
    retryable: bool = False
    denied: str = ""
    """The IAM action that was denied: the one AWS names, else the probe's; '' if nothing was."""
    statement: Mapping[str, object] | None = None
    """The IAM statement that would grant what was denied; None where none would."""


@dataclass(frozen=True)
class Probe:
    """One question to AWS. `run` returns a detail worth showing ('' for none) or raises a
    `LakeloadError`; `explain` returns the likely causes of what it raised."""

    name: str
    proves: str
    level: Level
    action: str
    """The IAM action it needs; '' when no policy decides."""
    resource: str
    """The ARN the action is asked for; all of them where AWS checks several."""
    run: Callable[[], str]
    explain: Callable[[Exception], tuple[str, ...]]
    needs: tuple[str, ...] = ()
    """Probes without whose success this one says nothing."""
    writes: bool = False
    beside_the_point: str = ""
    """Why this destination has no use for the probe; '' when it has."""
    also: tuple[Permission, ...] = ()
    """What AWS checks besides `action`, such as the KMS key of the objects."""


@dataclass(frozen=True)
class ProbeResult:
    """One line of the test."""

    probe: Probe
    status: Status
    milliseconds: int = 0
    detail: str = ""
    """What was found, or why the probe was skipped."""
    failure: Failure | None = None


@dataclass(frozen=True)
class Verdict:
    """The whole test. `left_behind` are URLs of probe objects that could not be removed, and
    the probe database of Glue with the command that deletes it."""

    results: tuple[ProbeResult, ...]
    left_behind: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """True when every required probe that ran has passed."""
        return not any(result.status is Status.FAILED for result in self.results)

    def with_status(self, status: Status) -> tuple[ProbeResult, ...]:
        """Return the results of one status, in order."""
        return tuple(result for result in self.results if result.status is status)
