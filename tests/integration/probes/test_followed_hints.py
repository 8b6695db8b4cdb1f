"""Likely causes that name a setting of the destination, followed literally: the check passes."""

from __future__ import annotations

from typing import Any

import pytest

from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import Failure
from lakeload_jobs.contract.spec import EncryptionSpec
from tests.hints import follow, follows
from tests.integration.probes.test_misconfigurations import world
from tests.integration.probes.world import KEY, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, Response, answer, without_support

__all__ = ["world"]

HEADER = "x-amz-server-side-encryption"


def _demands_encryption(request: Request, forward: Forward) -> Response:
    if request.header(HEADER):
        return forward(request)
    return answer(403, "AccessDenied", "Access Denied")(request, forward)


CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    # How the store answers to PutObject, the destination's encryption, and the clause.
    "a bucket policy that requires encryption": (
        _demands_encryption, {"type": "NONE"}, "set `encryption: {type: SSE_S3}`"
    ),
    "a store without encryption by a key": (
        without_support(HEADER), {"type": "SSE_KMS", "kms_key_id": KEY}, "leave `encryption` out"
    ),
}  # fmt: skip


def _failure(world: World) -> Failure | None:
    """Return why objects cannot be written."""
    test = ConnectionTest(world.destination, ConnectionOptions(timeout=15))
    results = [result for result in test.run() if result.probe.name == "put"]
    return results[0].failure


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_a_cause_that_names_encryption_lets_objects_be_written(
    world: World, name: str, case: tuple[Any, dict[str, Any], str]
) -> None:
    action, encryption, clause = case
    document = {"bucket": world.destination.bucket, "encryption": encryption}
    world.change(encryption=EncryptionSpec(**encryption))
    for operation in ("PutObject", "CreateMultipartUpload"):
        world.proxy.on(operation, action)
    failure = _failure(world)
    assert failure is not None
    follows(__file__, name, *failure.causes)
    assert any(clause in cause for cause in failure.causes)

    changed = follow(document, clause, "encryption")
    world.change(encryption=EncryptionSpec(**changed.get("encryption", {})))

    assert _failure(world) is None
