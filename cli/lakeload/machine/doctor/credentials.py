"""Credentials: who would answer for the base identity, and whether every secret is at hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference, resolve_locally
from lakeload_jobs.contract.spec import CredentialsSpec

if TYPE_CHECKING:
    from lakeload_jobs.aws.credentials import CredentialSource

PROVIDERS = {
    "env": "the environment (AWS_ACCESS_KEY_ID)",
    "assume-role": "a role that the profile assumes",
    "assume-role-with-web-identity": "a web identity token (IRSA, OIDC)",
    "sso": "IAM Identity Center (SSO)",
    "login": "a login of the AWS CLI",
    "shared-credentials-file": "the shared credentials file",
    "config-file": "the AWS configuration file",
    "custom-process": "the profile's credential_process",
    "container-role": "the container's role (ECS, EKS)",
    "iam-role": "the instance's role (EC2)",
    "ec2-credentials-file": "AWS_CREDENTIAL_FILE",
    "boto-config": "boto's old configuration file",
}
"""botocore's names of its providers, in words."""

SOON = 900.0
"""Seconds before their end at which keys that nobody renews are worth a warning."""


def credentials(patient: Patient) -> Iterator[Finding]:
    """Ask botocore's chain, or look for the document's own keys."""
    from lakeload_jobs.aws.credentials import credential_source

    destination = patient.need.destination
    spec = destination.credentials if destination else CredentialsSpec()
    if spec.access_key_id:
        found = f"keys of the document, from {spec.access_key_id}"
        yield Finding("credentials", Status.OK, found)
        return
    from lakeload_jobs.aws.errors import AwsError

    region = destination.region if destination else "us-east-1"
    try:
        source = credential_source(spec, region, asking=not patient.offline)
    except AwsError as error:
        yield _refused(patient, error, spec)
        return
    if source is None:
        yield _nobody(patient)
        return
    yield judge_source(source, datetime.now(UTC))


def judge_source(source: CredentialSource, now: datetime) -> Finding:
    """Return the finding for the provider that answers."""
    found = f"from {PROVIDERS.get(source.method, source.method)}"
    if source.profile:
        found += f", profile `{source.profile}`"
    if source.key_end:
        found += f", access key …{source.key_end}"
    if source.expires is None:
        return Finding("credentials", Status.OK, found)
    left = (source.expires - now).total_seconds()
    renew = _renewal(source.method, source.profile)
    if left <= 0:
        return Finding("credentials", Status.PROBLEM, f"{found}: expired", "", renew)
    found += f", until {source.expires:%Y-%m-%d %H:%M} UTC"
    if left < SOON and source.method in ("env", "custom-process", "shared-credentials-file"):
        why = "they end in less than 15 minutes"
        return Finding("credentials", Status.WARNING, found, why, renew)
    return Finding("credentials", Status.OK, found)


def secrets(patient: Patient) -> Iterator[Finding]:
    """Look whether the variables and files that the document refers to are there."""
    from lakeload_jobs.aws.credentials import local_references

    destination = patient.need.destination
    references = local_references(destination.credentials) if destination else ()
    missing = False
    for reference in references:
        try:
            resolve_locally(reference)
        except InvalidInput as error:
            missing = True
            yield Finding("secrets", Status.PROBLEM, error.message, "", _provide(reference))
    if references and not missing:
        listed = ", ".join(map(str, references))
        yield Finding("secrets", Status.OK, f"all that the document refers to are here: {listed}")


def _provide(reference: SecretReference) -> str:
    """Return the line that provides a secret; a file's is then typed, and ends with Ctrl-D."""
    if reference.kind == "env":
        return f"export {reference.name}=…"
    return f"install -m 600 /dev/stdin {shlex.quote(reference.name)}"


def _nobody(patient: Patient) -> Finding:
    """Nobody answers: a problem only for a document that needs somebody."""
    found = "no AWS credentials were found"
    if patient.offline:
        found += " in variables and files (--offline: container and instance were not asked)"
    command = "aws configure sso" if not patient.environment.get("AWS_PROFILE") else "aws sso login"
    if patient.need.destination is None:
        why = "a destination without `credentials` needs them"
        return Finding("credentials", Status.WARNING, found, why, command)
    status = Status.WARNING if patient.offline else Status.PROBLEM
    why = "the destination takes its base identity from the AWS chain"
    return Finding("credentials", status, found, why, command)


def _refused(patient: Patient, error: Exception, spec: CredentialsSpec) -> Finding:
    from lakeload_jobs.aws.errors import AwsError

    code = error.code if isinstance(error, AwsError) else ""
    hint = error.hint if isinstance(error, AwsError) and error.hint else ""
    profile = spec.profile or patient.environment.get("AWS_PROFILE")
    command = {
        "PartialCredentialsError": "aws configure" + (f" --profile {profile}" if profile else ""),
        "ProfileNotFound": "aws configure list-profiles" if spec.profile else "unset AWS_PROFILE",
        "UnauthorizedSSOTokenError": _renewal("sso", profile),
        "SSOTokenLoadError": _renewal("sso", profile),
        "TokenRetrievalError": _renewal("sso", profile),
        "ExpiredTokenException": _renewal("sso", profile),
        "ExpiredCredentials": _renewal("sso" if profile else "env", profile),
    }.get(code, _renewal("", profile))
    status = Status.PROBLEM if patient.need.destination else Status.WARNING
    return Finding("credentials", status, str(error), hint, command)


def _renewal(method: str, profile: str | None) -> str:
    """Return the command that renews keys nobody renews by himself."""
    tail = f" --profile {profile}" if profile else ""
    if method in ("sso", "login"):
        return f"aws {'sso login' if method == 'sso' else 'login'}{tail}"
    if method == "env":
        return "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_SESSION_TOKEN=…"
    return f"aws sts get-caller-identity{tail}"
