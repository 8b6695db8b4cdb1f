"""The connection check as a whole, and the part of it that runs before each load."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakeload.connections import Connections
from lakeload.policy.iam import base_policy, granting, uses_glue
from lakeload.policy.model import Statement
from lakeload.probes.glue import ProbeIcebergTables, ProbeTables
from lakeload.probes.runner import (
    ConnectionVerdict,
    Deadline,
    Failure,
    Probe,
    ProbeResult,
    run_probes,
)
from lakeload.probes.s3 import ProbeBucket, ProbeObjects, s3_probes
from lakeload.probes.sts import ProbeIdentity
from lakeload.sources.registry import source_of
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput, Refused
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import (
    Interface,
    catalog_of,
    catalog_traits,
    needs_aws_identity,
    vends,
)
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import WHAT_IS_LOST, ConditionalWritesUnsupported, Objects

if TYPE_CHECKING:
    from lakeload.probes.iceberg import ProbeCatalog, ProbeNessie


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
            "the endpoint begins with the bucket's name, which lakeload adds: remove it "
            f"from the URL (`{host.partition('.')[2]}`)"
        )
    elif destination.addressing_style == "VIRTUAL" and code in _NO_SERVER:
        yield (
            "`addressing_style: VIRTUAL` needs a DNS name for "
            f"`{destination.bucket}.{host}`: set PATH"
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

    # All tries fit, so that AWS's own error comes before "no response within …".
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
        *,
        tables: Sequence[TableSpec] = (),
        drivers: Callable[[str], Any] | None = None,
        more: Sequence[Probe] = (),
    ) -> None:
        """Prepare the probes; nothing is called yet. `session` is whose identity is tested, by
        default one of the test's own; `tables` are those whose source is checked as well, where
        need be with one of the JDBC `drivers`; `more` probes come last. Raises `InvalidInput` for
        an unknown skip."""
        self._options = options
        self._destination = destination
        self._deadline = Deadline(options.timeout * (1 - CLEANUP_SHARE))
        tested = session or AwsSession(destination, label="test-connection")
        session = tested.waiting(
            connect_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            max_attempts=options.attempts,
        )
        # What the store can do is for the probes to say, with objects of their own.
        conditional, waits = not destination.single_writer, Waits(answer=options.connect_timeout)
        objects = Objects(session, destination, waits=waits, conditional=conditional)
        self._objects = ProbeObjects(destination, session, objects)
        self._catalog = _catalog_checks(destination, session, options)
        of_catalog = self._catalog.probes() if self._catalog else []
        identity = ProbeIdentity(destination, session, options.wait, self._deadline)
        bucket = ProbeBucket(destination, session, objects)
        find_bucket, *s3 = s3_probes(destination, bucket, self._objects)
        # By then STS and S3 have told the time, whatever else they said.
        in_order = [*identity.probes(), find_bucket, identity.clock(), *s3, *of_catalog]
        in_order += [*_source_probes(tables, SourceReaders(destination, session, drivers)), *more]
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
            tables = self._catalog.remove_all(rest) if self._catalog else ()
            self._left_behind = (*self._objects.remove_all(rest), *tables)

    def verdict(self) -> ConnectionVerdict:
        """Return what has been found so far."""
        seconds = time.monotonic() - self._started
        return ConnectionVerdict(tuple(self._results), seconds, self._left_behind)


def _source_probes(tables: Sequence[TableSpec], readers: SourceReaders) -> list[Probe]:
    """Return the checks of the source, of which a pipeline has one."""
    if not tables:
        return []
    inputs = [(table, table.input) for table in tables]
    found = source_of(tables[0].input).checks(inputs, readers)
    return [
        Probe(
            name=check.name,
            proves=check.proves,
            needs=check.needs,
            run=check.run,
            explain=lambda error: (),
        )
        for check in found
    ]


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
            f"there is no check `{name}` to skip",
            hint=did_you_mean(name, names) or f"the checks are {', '.join(names)}",
        )


def _catalog_checks(
    destination: DestinationSpec, session: AwsSession, options: ConnectionOptions
) -> ProbeTables | ProbeCatalog | ProbeNessie | None:
    """Return the part of the test that is about the catalog; None where there is none."""
    catalog = catalog_of(destination)
    if catalog is None:
        return ProbeTables(destination, session) if uses_glue(destination) else None
    traits = catalog_traits(catalog)
    if traits.in_glue:
        return ProbeIcebergTables(destination, session)
    # Take half a second to import: for destinations that need them only.
    from lakeload.probes.iceberg import ProbeCatalog, ProbeNessie
    from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts

    timeouts = HttpTimeouts(options.connect_timeout, options.read_timeout, options.attempts)
    probes: Mapping[Interface, type[ProbeCatalog] | type[ProbeNessie]] = {
        Interface.REST: ProbeCatalog,
        Interface.NESSIE: ProbeNessie,
    }
    return probes[traits.interface](destination, session, timeouts)


NAMES = frozenset({"credentials", "assume-role", "bucket", "list"})
"""What is asked where the destination's own identity writes."""
_SIGNER = frozenset({"credentials", "assume-role"})
_CATALOG = frozenset({"catalog", "catalog-region", "catalog-token", "catalog-warehouse"})
TIMEOUT_SECONDS = 30.0


def preflight(connections: Connections) -> None:
    """Make sure that the role can be assumed and the prefix listed, and that a catalog other than
    Glue lets us in; writes nothing.

    Raises `Refused` with what AWS said, and in the hint what to do; `InvalidInput` for a secret
    that is not there.
    """
    # A load that gives up has to be started again by somebody: try more often than a test does.
    destination = connections.destination
    options = ConnectionOptions(
        timeout=TIMEOUT_SECONDS, read_only=True, only=_names(destination), attempts=3
    )
    for result in ConnectionTest(destination, options, connections.before_spark).run():
        if result.failure is not None:
            here = result.failure.code == InvalidInput.__name__
            raise (InvalidInput if here else Refused)(
                result.failure.message,
                hint=_advice(result.probe, result.failure),
                retryable=result.failure.retryable,
            )


def _names(destination: DestinationSpec) -> frozenset[str]:
    catalog = catalog_of(destination)
    if catalog is None or catalog_traits(catalog).in_glue:
        return NAMES
    if not vends(catalog):
        return NAMES | _CATALOG
    # The catalog lends the keys: who runs lakeload may have no right on the bucket at all.
    return _CATALOG | _SIGNER if needs_aws_identity(catalog) else _CATALOG


def conditional_writes(connections: Connections) -> str | None:
    """Make sure that a table can have two writers at once; return what is lost where it cannot.

    Only with `single_writer: true` that is no error. Leaves one small object below the prefix.
    Raises `Refused` and what a write raises.
    """
    destination = connections.destination
    objects = Objects(connections.before_spark, destination, waits=Waits(answer=TIMEOUT_SECONDS))
    if objects.has_conditional_writes():
        return None
    if destination.single_writer:
        return WHAT_IS_LOST
    raise ConditionalWritesUnsupported(
        f"the store of `{objects.url(destination.prefix)}` has no conditional writes, so two "
        "concurrent writers could damage a table",
        hint=(
            "use a store with conditional writes (`If-None-Match`), or set `single_writer: "
            "true` in the destination and never run two loads of a table at a time"
        ),
    )


def _advice(probe: Probe, failure: Failure) -> str:
    advice = [failure.hint] if failure.hint else list(failure.causes[:3])
    if failure.status == 403 and probe.resource:
        advice.append(f"the action is `{probe.action}` on `{probe.resource}`")
    return "; ".join([*advice, "`lakeload test-connection` shows the likely causes"])
