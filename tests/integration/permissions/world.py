"""A destination of one shape at the AWS that checks everything, whose role has the policy only."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from lakeload.checks import CheckStatus
from lakeload.demo.aws import seed_lake
from lakeload.formats.parquet.recover import recover_logs, recovered
from lakeload.formats.parquet.tables import ParquetTables, of_destination
from lakeload.formats.reports import RecoveredTable
from lakeload.formats.tables import open_session
from lakeload.policy.model import PolicyDocument
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import ConnectionVerdict
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from lakeload_jobs.formats.parquet.glue import GlueCatalog
from lakeload_jobs.storage.objects import Objects
from tests.aws_calls import action_of
from tests.integration.permissions.shapes import Shape
from tests.integration.probes.glue_world import know_every_call
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import AwsServer, Lake


@dataclass
class World:
    """One shape: its lake, its destination behind a recording proxy, its policies."""

    shape: Shape
    lake: Lake
    proxy: FaultProxy
    destination: DestinationSpec
    policies: tuple[PolicyDocument, ...]
    seen: dict[str, set[str]] = field(default_factory=dict)
    """What each kind of work asked for: `probes`, `load`, `recover` → IAM actions."""

    @classmethod
    def make(cls, shape: Shape, server: AwsServer, folder: Path) -> World:
        """Make bucket, role and proxy; nothing but the generated policy is attached."""
        bucket = f"lake-{secrets.token_hex(6)}"
        lake = Lake(server, seed_lake(server.admin, bucket=bucket, prefix=shape.prefix))
        proxy = FaultProxy(server.endpoint)
        proxy.start()
        know_every_call(proxy)
        place = proxy.endpoint
        destination = shape.destination(
            bucket,
            lake.seeded.role_arn,
            credentials=_credentials(lake, folder),
            endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        )
        world = cls(shape, lake, proxy, destination, shape.policies(destination))
        world.attach(world.policies)
        return world

    def attach(self, policies: Sequence[PolicyDocument]) -> None:
        """Give the role these documents and nothing else."""
        statements = [one.as_json() for policy in policies for one in policy.statements]
        document = {"Version": "2012-10-17", "Statement": statements}
        self.lake.server.admin.put_role_policy(self.lake.seeded.role, document)

    def ask(self) -> ConnectionVerdict:
        """Run the connection test to its end."""
        test = ConnectionTest(self.destination, ConnectionOptions(timeout=60))
        for _ in test.run():
            pass
        return test.verdict()

    def recover(self) -> list[RecoveredTable]:
        """Recover every table, dead uploads included."""
        session = open_session(self.destination, "recover")
        objects = Objects(session, self.destination)
        tables = of_destination(objects, self.destination.prefix, ())
        glue = GlueCatalog(session, self.destination)
        lake = ParquetTables(objects, glue, 4, lambda _: None, tables)
        found = recover_logs(lake, abort_older_than=timedelta(0), dry_run=False)
        return [recovered(table.target, one) for table, one in zip(tables, found, strict=True)]

    def record(self, kind: str, work: Callable[[], Any]) -> Any:
        """Return what the work returns, and keep the actions that its requests needed."""
        before = len(self.proxy.requests)
        result = work()
        requests = self.proxy.requests[before:]
        assert all(request.operation for request in requests), "each request is recognised"
        self.seen.setdefault(kind, set()).update(
            action_of(request.service, request.operation)
            for request in requests
            if request.service != "sts"
        )
        return result

    def close(self) -> None:
        """End the proxy, and free what the emulator keeps in memory."""
        self.proxy.stop()
        self.lake.empty()


def without(policies: Sequence[PolicyDocument], action: str) -> list[PolicyDocument]:
    """Return the documents without one action; a statement that granted nothing else is gone."""
    return [
        replace(
            policy,
            statements=tuple(
                replace(statement, actions=tuple(a for a in statement.actions if a != action))
                for statement in policy.statements
                if set(statement.actions) != {action}
            ),
        )
        for policy in policies
    ]


def problems(verdict: ConnectionVerdict) -> dict[str, str]:
    """Return the probes that failed or warned, each with its status."""
    return {r.probe.name: str(r.status) for r in verdict.results if r.failure is not None}


def dependents(verdict: ConnectionVerdict, failed: Mapping[str, str]) -> set[str]:
    """Return the probes that depend on those that failed, directly or not."""
    found: set[str] = set()
    for result in verdict.results:
        probe = result.probe
        if not probe.beside_the_point and set(probe.needs) & (set(failed) | found):
            found.add(probe.name)
    return found


def skipped(verdict: ConnectionVerdict) -> set[str]:
    """Return the probes that were skipped, but for those the destination has no use for."""
    return {
        r.probe.name
        for r in verdict.results
        if r.status is CheckStatus.SKIPPED and not r.probe.beside_the_point
    }


def _credentials(lake: Lake, folder: Path) -> CredentialsSpec:
    """Return the lake's credentials as files, which Spark's workers can read too."""
    values = {
        "external_id": lake.seeded.external_id,
        "access_key_id": lake.seeded.base_key.access_key_id,
        "secret_access_key": lake.seeded.base_key.secret_access_key,
    }
    found: dict[str, SecretReference] = {}
    for name, value in values.items():
        path = folder / name
        path.write_text(value)
        found[name] = SecretReference("file", str(path))
    return CredentialsSpec(
        role_arn=lake.seeded.role_arn,
        external_id=found["external_id"],
        access_key_id=found["access_key_id"],
        secret_access_key=found["secret_access_key"],
    )
