"""The order of the causes of a role that cannot be assumed."""

from __future__ import annotations

import pytest

from lakeload.probes.causes import known_causes
from lakeload.probes.runner import Deadline
from lakeload.probes.sts import ProbeIdentity
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

ROLE = "arn:aws:iam::123456789012:role/lake"
TEXT = (
    f"User: arn:aws:iam::123456789012:user/u is not authorized to perform: sts:AssumeRole on {ROLE}"
)
REFERENCE = SecretReference("env", "EXTERNAL_ID")


def causes(text: str, reference: SecretReference | None = REFERENCE) -> tuple[str, ...]:
    """Return the causes of an AssumeRole that AWS denies with this text."""
    credentials = CredentialsSpec(role_arn=ROLE, external_id=reference)
    destination = DestinationSpec("lake", "eu-central-1", credentials=credentials)
    probes = ProbeIdentity(destination, AwsSession(destination), 0, Deadline(60)).probes()
    (explain,) = [probe.explain for probe in probes if probe.name == "assume-role"]
    return explain(AwsError(text, code="AccessDenied", status=403, operation="AssumeRole"))


@pytest.mark.parametrize("reference", [REFERENCE, None])
def test_the_base_identity_comes_first_where_sts_names_its_policy(
    monkeypatch: pytest.MonkeyPatch, reference: SecretReference | None
) -> None:
    monkeypatch.setenv("EXTERNAL_ID", "id-1 ")
    named = causes(
        f"{TEXT} because no identity-based policy allows the sts:AssumeRole action", reference
    )
    silent = causes(TEXT, reference)

    assert named[0].startswith("the base identity has no policy that allows sts:AssumeRole")
    assert "ExternalId" in named[-1]
    assert "ExternalId" in silent[0]


@pytest.mark.parametrize("code", ["TimedOut", "ReadTimeoutError", "ConnectTimeoutError"])
def test_the_status_of_aws_is_among_the_causes_of_a_timeout(code: str) -> None:
    assert "https://health.aws.amazon.com" in known_causes().of(code)[-1]
