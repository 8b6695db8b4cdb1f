"""Checks run in order, and their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock

from lakeload.checks import CheckStatus, T, Verdict, in_background
from lakeload.data import read_toml
from lakeload.probes.causes import is_lake_formation, likely_causes, refusal
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, Refused
from lakeload_jobs.formats.iceberg.catalogs import CatalogError
from lakeload_jobs.storage.objects import UnknownOutcome


class Level(StrEnum):
    """What a failure means."""

    REQUIRED = "required"
    """`sync` cannot work."""
    USEFUL = "useful"
    """`sync` works; something around it does not. A warning."""
    SAFETY = "safety"
    """Everything works, for others too. A warning."""


class ProbeFailed(Refused):
    """AWS answered, and the answer is not what a load needs. `code` names the finding."""

    def __init__(self, message: str, *, code: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class CheckSkipped(LakeloadError):
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


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question to AWS, a line of the table of checks, checks.toml. `run` returns a detail worth
    showing ('' for none) or raises a `LakeloadError`; `explain` returns the likely causes of
    what it raised."""

    name: str
    proves: str
    run: Callable[[], str | None]
    explain: Callable[[Exception], tuple[str, ...]] = likely_causes
    action: str = ""
    """The IAM action it needs, or the catalog's privilege; '' when no policy decides."""
    needs: tuple[str, ...] = ()
    """Checks without whose success this one says nothing."""
    level: Level = Level.REQUIRED
    writes: bool = False
    about: str = ""
    """What the action is asked for: the ARN follows from it."""
    lost: str = ""
    """What a role without the permission does without; '' when a load needs it."""
    resource: str = ""
    """The ARN the action is asked for; all of them where AWS checks several."""
    beside_the_point: str = ""
    """Why this destination has no use for the probe; '' when it has."""
    also: tuple[Permission, ...] = ()
    """What AWS checks besides `action`, such as the KMS key of the objects."""


def probes_of(table: str, owner: object, kind: str = "") -> Iterator[Probe]:
    """Yield the probes of a table in their order, but for those of another kind of tables or
    catalog. Each calls the method of `owner` that sends its request."""
    for row in read_toml(__package__, "checks.toml")[table]:
        texts = dict(row)
        call, only_with = texts.pop("call"), texts.pop("only_with", "")
        if only_with in ("", kind):
            needs, level = tuple(row.get("needs", ())), Level(row.get("level", Level.REQUIRED))
            yield Probe(**{**texts, "needs": needs, "level": level, "run": getattr(owner, call)})


def failed(name: str, **values: object) -> ProbeFailed:
    """Return the failure that failures.toml describes, with these values in it."""
    row = read_toml(__package__, "failures.toml")[name]
    texts: dict[str, str] = {key: text.format(**values) for key, text in row.items()}
    return ProbeFailed(texts["message"], code=texts["code"], hint=texts["hint"])


@dataclass(frozen=True)
class ProbeResult:
    """One line of the test."""

    probe: Probe
    status: CheckStatus
    milliseconds: int = 0
    detail: str = ""
    """What was found, or why the probe was skipped."""
    failure: Failure | None = None
    blocked_by: str = ""
    """The probe that this one depends on, where that one failed or was itself blocked."""


@dataclass(frozen=True)
class ConnectionVerdict(Verdict[ProbeResult]):
    """The results of all probes. `left_behind` names what the test could not remove: URLs of probe
    objects, and the probe database of Glue with the command that deletes it."""

    left_behind: tuple[str, ...] = ()


@dataclass
class Deadline:
    """When the test must be over. Waiting on purpose moves it."""

    seconds: float
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        """Start counting."""
        self._end = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds that remain, never negative."""
        return max(0.0, self._end - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Move the end by seconds that were spent waiting."""
        self._end += seconds


def run_probes(
    probes: Iterable[Probe], deadline: Deadline, *, skip: Collection[str] = ()
) -> Iterator[ProbeResult]:
    """Yield one result for each probe, in order.

    A probe whose prerequisite failed, or was skipped for that reason, is skipped; one the caller
    skips is taken for granted.
    """
    missing: set[str] = set()
    for probe in probes:
        if probe.name in skip:
            yield ProbeResult(probe, CheckStatus.SKIPPED, detail="skipped by --skip")
            continue
        if probe.beside_the_point:
            yield ProbeResult(probe, CheckStatus.SKIPPED, detail=probe.beside_the_point)
            continue
        if blocking := next((name for name in probe.needs if name in missing), None):
            missing.add(probe.name)
            why = f"needs `{blocking}`"
            yield ProbeResult(probe, CheckStatus.SKIPPED, detail=why, blocked_by=blocking)
            continue
        result = _run(probe, deadline)
        if result.failure is not None:
            missing.add(probe.name)
        yield result


def within(call: Callable[[], T], deadline: Deadline) -> T:
    """Return what `call` returns, or raise `ProbeFailed` when the deadline comes first.

    The clients' own time-outs are shorter; this one is for what has none, such as a DNS lookup.
    A call that is stuck is left to end with the process.
    """
    work = in_background(call, "probe")
    while not wait((work,), min(deadline.left, 0.2)).done:
        if not deadline.left:
            raise failed("time-out")
    return work.result()


def succeeds(call: Callable[[], object], deadline: Deadline) -> bool:
    """Return whether `call` ended well before the deadline."""
    try:
        within(call, deadline)
    except LakeloadError:
        return False
    return True


def _run(probe: Probe, deadline: Deadline) -> ProbeResult:
    started = time.monotonic()
    detail, failure, status = "", None, CheckStatus.PASSED
    try:
        detail = within(probe.run, deadline) or ""
    except CheckSkipped as error:
        return ProbeResult(probe, CheckStatus.SKIPPED, detail=error.message)
    except LakeloadError as error:
        failure = failure_of(error, probe)
        status = CheckStatus.FAILED if probe.level is Level.REQUIRED else CheckStatus.WARNING
    milliseconds = round((time.monotonic() - started) * 1000)
    return ProbeResult(probe, status, milliseconds, detail, failure)


def failure_of(error: LakeloadError, probe: Probe) -> Failure:
    """Return the error as the connection test shows it."""
    code = "InvalidInput" if isinstance(error, InvalidInput) else type(error).__name__
    status: int | None = None
    said: BaseException | None = error
    if isinstance(error, CatalogError):
        code, status = error.code, error.status
    elif isinstance(error, ProbeFailed):
        code = error.code
    elif not isinstance(error, AwsError):
        # A write without a clear answer is an error of its own, around what AWS last said.
        said = error.__cause__
    aws = said if isinstance(said, AwsError) else None
    if aws is not None:
        code, status = aws.code, aws.status
    # What a load would do about an unclear write is no advice for a test.
    shown = aws if aws and isinstance(error, UnknownOutcome) else error
    return Failure(
        message=shown.message,
        code=code,
        status=status,
        request_id=aws.request_id if aws else None,
        causes=probe.explain(aws or error),
        # One sentence for the three causes of a denied role would only repeat them.
        hint=None if aws and aws.denied and aws.operation == "AssumeRole" else shown.hint,
        retryable=error.retryable,
        denied=_denied_action(aws, probe),
    )


_SECRETS = {"GetSecretValue": "secretsmanager:GetSecretValue", "GetParameter": "ssm:GetParameter"}
"""Of a probe that no single action stands for."""


def _denied_action(error: AwsError | None, probe: Probe) -> str:
    if error is None or not error.denied or is_lake_formation(error):
        return ""
    denial = refusal(error)
    if denial and denial.beyond_a_grant:
        return ""
    named = denial.action if denial else ""
    return named or probe.action or _SECRETS.get(error.operation, "")


class Writing:
    """Enter it to make something: one call at a time, and none after `ended`.

    A call that a time-out gave up goes on in its thread. Entering raises `ProbeFailed` then.
    """

    def __init__(self) -> None:
        self._busy = Lock()
        self._over = False

    def __enter__(self) -> None:
        self._busy.acquire()
        if self._over:
            self._busy.release()
            raise failed("over")

    def __exit__(self, *exception: object) -> None:
        self._busy.release()

    @contextmanager
    def ended(self, deadline: Deadline) -> Iterator[None]:
        """Let nothing begin any more. A call that is under way is waited for, half of the time that
        is left: it could make something after its removal."""
        idle = self._busy.acquire(timeout=deadline.left / 2)
        self._over = True
        try:
            yield
        finally:
            if idle:
                self._busy.release()
