"""What the base identity needs: the right to assume the role, and to read secrets kept in AWS."""

from __future__ import annotations

from collections.abc import Iterator

from lakeload.policy.iam.model import Place, PolicyDocument, Statement, literal
from lakeload.policy.iam.trust import tag_session
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec
from lakeload_jobs.contract.traits import catalog_of
from lakeload_jobs.core.aws_partitions import partition


def base_policy(
    destination: DestinationSpec, *, account: str | None, assumes: bool
) -> PolicyDocument | None:
    """Return the base identity's own policy, None when it needs nothing.

    `account` is the identity's (12 digits, None for any): its secrets lie there. Without `assumes`
    it is somebody else who takes the role.
    """
    statements: list[Statement] = []
    credentials = destination.credentials
    if credentials.role_arn and assumes:
        why = "the base identity becomes the role; the role's trust policy has to say so too"
        sid = "AssumeRole"
        statements.append(Statement(sid, ("sts:AssumeRole",), (credentials.role_arn,), why))
        if credentials.session_tags:
            keys = tuple(credentials.session_tags)
            statements.append(tag_session(keys, role_arn=credentials.role_arn))
    place = Place(partition(destination.region), destination.region, account or "*")
    statements += _secrets(tuple(references(destination)), place)
    return PolicyDocument("base", tuple(statements)) if statements else None


def references(destination: DestinationSpec) -> Iterator[SecretReference]:
    """Yield the references to secrets that the destination holds."""
    catalog = catalog_of(destination)
    found = list(_of_credentials(destination.credentials))
    if catalog is not None:
        found += [catalog.client_id, catalog.client_secret, catalog.credential, catalog.token]
        found += (catalog.headers or {}).values()
    yield from dict.fromkeys(reference for reference in found if reference is not None)


def _of_credentials(given: CredentialsSpec) -> Iterator[SecretReference | None]:
    yield from (given.external_id, given.access_key_id)
    yield from (given.secret_access_key, given.session_token)


def _secrets(found: tuple[SecretReference, ...], place: Place) -> Iterator[Statement]:
    """Yield one statement for each of the two services that keep secrets."""
    secrets = tuple(_secret(one.name, place) for one in found if one.kind == "aws_secret")
    if secrets:
        why = "the secrets that the destination refers to are read"
        yield Statement("ReadSecrets", ("secretsmanager:GetSecretValue",), secrets, why)
    parameters = tuple(_parameter(one.name, place) for one in found if one.kind == "aws_parameter")
    if parameters:
        why = "the parameters that the destination refers to are read"
        yield Statement("ReadParameters", ("ssm:GetParameter",), parameters, why)


def _secret(name: str, place: Place) -> str:
    """Return the ARN: Secrets Manager adds `-` and six characters to the name.

    https://docs.aws.amazon.com/secretsmanager/latest/userguide/auth-and-access_iam-policies.html
    """
    if name.startswith("arn:"):
        return name
    return place.arn("secretsmanager", f"secret:{literal(name)}-??????")


def _parameter(name: str, place: Place) -> str:
    if name.startswith("arn:"):
        return name
    return place.arn("ssm", f"parameter/{literal(name.removeprefix('/'))}")
