"""The few probes `sync` and `plan` run before they start Spark."""

from __future__ import annotations

from lakeload.connections import Connections
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import Failure, Probe
from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits, needs_aws_identity, vends
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import WHAT_IS_LOST, ConditionalWritesUnsupported, Objects

NAMES = frozenset({"credentials", "assume-role", "bucket", "list"})
"""What is asked where the destination's own identity writes."""
_SIGNER = frozenset({"credentials", "assume-role"})
_CATALOG = frozenset({"catalog", "catalog-region", "catalog-token", "catalog-warehouse"})
TIMEOUT_SECONDS = 30.0


def preflight(connections: Connections) -> None:
    """Make sure that the role can be assumed and the prefix listed, and that a catalog other than
    Glue lets us in; writes nothing.

    Raises `Refused` with what AWS said, and in the hint what to do.
    """
    # A load that gives up has to be started again by somebody: try more often than a test does.
    destination = connections.destination
    options = ConnectionOptions(
        timeout=TIMEOUT_SECONDS, read_only=True, only=_names(destination), attempts=3
    )
    for result in ConnectionTest(destination, options, connections.before_spark).run():
        if result.failure is not None:
            raise Refused(
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
        f"writing below `{objects.url(destination.prefix)}`: this store has no conditional writes, "
        "so two writers at once could damage a table",
        hint="use a store that has them (`If-None-Match`); or set `single_writer: true` and make "
        "sure that there is never more than one writer at a time",
    )


def _advice(probe: Probe, failure: Failure) -> str:
    advice = [failure.hint] if failure.hint else list(failure.causes[:3])
    if failure.status == 403 and probe.resource:
        advice.append(f"the action is `{probe.action}` on `{probe.resource}`")
    return "; ".join([*advice, "`lakeload test-connection` shows the likely causes"])
