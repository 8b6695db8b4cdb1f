"""The connection check as a whole."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from lakeload.policy.iam.base import base_policy
from lakeload.policy.iam.iam import granting
from lakeload.policy.iam.model import Statement
from lakeload.probes.catalogs import catalog_part
from lakeload.probes.runner import CheckVerdict, Deadline, Probe, ProbeResult, run_probes
from lakeload.probes.s3 import ProbeBucket, ProbeObjects, s3_probes
from lakeload.probes.sts import clock_probe, sts_probes
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects

_NO_SERVER = {
    *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "TimedOut"),
    *("ConnectionClosedError", "SSLError", "ResponseParserError", "NotAStore", "Unknown"),
    *("NoSuchBucket", "InvalidClientTokenId", "InvalidAccessKeyId"),
}
"""Codes that a server other than the one that is meant would cause."""


def surrounding_causes(
    error: Exception, service: str, destination: DestinationSpec, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what here makes the failure likely; more likely than what its code alone tells.

    `service` is `s3`, `sts` or `glue`. No value of a variable is shown but an endpoint's host.
    """
    code = str(getattr(error, "code", ""))
    return (
        *_stray_endpoint(code, service, destination, environment),
        *_addressing(code, service, destination),
    )


def _stray_endpoint(
    code: str, service: str, destination: DestinationSpec, environment: Mapping[str, str]
) -> Iterator[str]:
    if code not in _NO_SERVER or getattr(destination.endpoints, service, None):
        return
    for name in (f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"):
        if url := environment.get(name):
            yield (
                f"{name} sends this call to `{_host(url)}`, and the document does not: unset it, "
                f"or set `endpoints.{service}`"
            )
            return


def _addressing(code: str, service: str, destination: DestinationSpec) -> Iterator[str]:
    endpoint = destination.endpoints.s3
    if service != "s3" or not endpoint:
        return
    host = _host(endpoint)
    if code in _NO_SERVER and host.startswith(f"{destination.bucket}."):
        yield (
            "the endpoint begins with the bucket's name, which is added once more: write it "
            f"without (`{host.partition('.')[2]}`)"
        )
    elif destination.addressing_style == "VIRTUAL" and code in _NO_SERVER:
        yield (
            f"`addressing_style: VIRTUAL` asks the host `{destination.bucket}.{host}`, which needs "
            "a name in DNS: set PATH"
        )


def _host(url: str) -> str:
    """Return host and port of a URL: no userinfo, path or query."""
    return urlsplit(url if "//" in url else f"//{url}").netloc.rpartition("@")[2]


def with_statement(result: ProbeResult, destination: DestinationSpec) -> ProbeResult:
    """Return the result with the statement that would have let the probe pass, if there is one."""
    failure = result.failure
    if failure is None or not failure.denied:
        return result
    service = failure.denied.partition(":")[0]
    statement = _statement(destination, failure.denied)
    # AWS may name an action of the same service that belongs to the one that was asked for.
    if statement is None and result.probe.action.startswith(f"{service}:"):
        statement = _statement(destination, result.probe.action)
    if statement is None:
        return result
    return replace(result, failure=replace(failure, statement=statement.as_json()))


def _statement(destination: DestinationSpec, action: str) -> Statement | None:
    if not action.startswith(("sts:", "secretsmanager:", "ssm:")):
        return granting(destination, action)
    # What the base identity needs, which assumes the role and reads the secrets.
    base = base_policy(destination, account=None, assumes=True)
    statements = base.statements if base else ()
    return next((one for one in statements if action in one.actions), None)


CLEANUP_SHARE = 0.25
"""The part of the time-out that is kept for cleaning up."""


@dataclass(frozen=True)
class ConnectionOptions:
    """How to test. `timeout` (seconds) is for everything but the waiting that `wait` allows."""

    timeout: float = 30
    wait: float = 0
    """How long a denied AssumeRole is repeated: IAM takes up to a minute to know a new role."""
    read_only: bool = False
    skip: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    """Leave every other probe out; None runs them all."""
    attempts: int = 2
    """How often a request is sent that the server or the network fails."""

    # All tries fit, so that AWS's own error comes before "no answer within …".
    @property
    def connect_timeout(self) -> float:
        """How long a connection is waited for, in seconds."""
        return min(5, self.timeout / 6)

    @property
    def read_timeout(self) -> float:
        """How long an answer is waited for, in seconds."""
        return min(10, self.timeout / 5)


class ConnectionTest:
    """One test. Iterate `run` to its end or close it: either way it cleans up."""

    def __init__(
        self,
        destination: DestinationSpec,
        options: ConnectionOptions,
        session: AwsSession | None = None,
    ) -> None:
        """Prepare the probes; nothing is called yet. `session` is whose identity is tested, by
        default one of the test's own. Raises `InvalidInput` for an unknown skip."""
        self._options = options
        self._destination = destination
        self._deadline = Deadline(options.timeout * (1 - CLEANUP_SHARE))
        tested = session or AwsSession(destination, label="test-connection")
        session, objects = _clients(destination, options, tested)
        self._objects = ProbeObjects(destination, session, objects)
        self._catalog = catalog_part(
            destination,
            session,
            connect_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            attempts=options.attempts,
        )
        sts = sts_probes(destination, session, wait=options.wait, deadline=self._deadline)
        bucket = ProbeBucket(destination, session, objects)
        find_bucket, *s3 = s3_probes(destination, bucket, self._objects)
        # By then STS and S3 have told the time, whatever else they said.
        in_order = [*sts, find_bucket, clock_probe(session), *s3, *self._catalog.probes]
        self.probes = tuple(
            _knowing_surroundings(probe, destination)
            for probe in in_order
            if not (options.read_only and probe.writes)
            and (options.only is None or probe.name in options.only)
        )
        self._results: list[ProbeResult] = []
        self._left_behind: tuple[str, ...] = ()
        self._started = time.monotonic()
        _check_skip(options.skip, self.probes)

    def run(self) -> Generator[ProbeResult, None, None]:
        """Yield each probe's result as it comes; remove what the probes wrote at the end."""
        try:
            for found in run_probes(self.probes, self._deadline, skip=self._options.skip):
                result = with_statement(found, self._destination)
                self._results.append(result)
                yield result
        finally:
            rest = Deadline(self._deadline.left + self._options.timeout * CLEANUP_SHARE)
            tables = self._catalog.remove_all(rest)
            self._left_behind = (*self._objects.remove_all(rest), *tables)

    def verdict(self) -> CheckVerdict:
        """Return what has been found so far."""
        seconds = time.monotonic() - self._started
        return CheckVerdict(tuple(self._results), self._left_behind, seconds)


def _clients(
    destination: DestinationSpec, options: ConnectionOptions, tested: AwsSession
) -> tuple[AwsSession, Objects]:
    session = tested.waiting(
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        max_attempts=options.attempts,
    )
    objects = Objects(
        session,
        destination,
        waits=Waits(answer=options.connect_timeout),
        # What the store can do is for the probes to say, with objects of their own.
        conditional=not destination.single_writer,
    )
    return session, objects


def _knowing_surroundings(probe: Probe, destination: DestinationSpec) -> Probe:
    """Return the probe with the causes first that only this machine and the document tell."""
    service = probe.action.partition(":")[0]
    if service not in ("s3", "sts", "glue"):
        return probe

    def explain(error: Exception) -> tuple[str, ...]:
        here = surrounding_causes(error, service, destination, os.environ)
        return (*here, *probe.explain(error))

    return replace(probe, explain=explain)


def _check_skip(skip: frozenset[str], probes: tuple[Probe, ...]) -> None:
    names = [probe.name for probe in probes]
    for name in sorted(skip - set(names)):
        raise InvalidInput(
            f"there is no probe `{name}` to skip",
            hint=did_you_mean(name, names) or f"the probes are {', '.join(names)}",
        )
