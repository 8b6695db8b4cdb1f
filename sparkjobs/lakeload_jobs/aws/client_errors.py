"""What botocore's exceptions mean where no answer of AWS is behind them: how the base identity is
found, and the way to the server."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from botocore import exceptions as botocore_errors

from lakeload_jobs.aws.network_errors import (
    authorities_unreadable,
    certificate_problem,
    proxy_refusal,
)

# Nothing of the request reached the server.
NEVER_SENT = (
    botocore_errors.EndpointConnectionError,
    botocore_errors.ConnectTimeoutError,
    botocore_errors.ProxyConnectionError,
)
# The request may have been carried out although no answer came.
NO_ANSWER = (
    botocore_errors.HTTPClientError,
    botocore_errors.ConnectionError,
    botocore_errors.IncompleteReadError,
)

_SOURCES = {
    "custom-process": "run the profile's `credential_process` by hand: it fails, or prints "
    "something else than the keys",
    "Environment": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: the profile's "
    "`credential_source = Environment` finds none",
    "container-role": "check the container's credentials service "
    "(AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI): it gives no keys",
    "iam-role": "attach an instance profile to this machine: its metadata service gives no keys",
}


@dataclass(frozen=True)
class Explained:
    """A failure without an answer. `code` is botocore's class name, or a finer name of our own."""

    code: str
    meaning: str
    hint: str | None = None
    retryable: bool = False


def explain(error: botocore_errors.BotoCoreError) -> Explained:
    """Return what the exception means; never a value that could be a secret."""
    return _of_identity(error) or _of_network(error) or _of_request(error)


def _of_identity(error: botocore_errors.BotoCoreError) -> Explained | None:
    name, told = type(error).__name__, error.kwargs
    if isinstance(error, botocore_errors.NoCredentialsError):
        return Explained(
            name,
            "no AWS credentials were found",
            "set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use `credentials`",
        )
    if isinstance(error, botocore_errors.PartialCredentialsError):
        missing, where = told.get("cred_var"), told.get("provider")
        return Explained(
            name,
            f"the AWS credentials of `{where}` are incomplete: `{missing}` is missing",
            f"set `{missing}`, or remove the rest of these credentials",
        )
    if isinstance(error, botocore_errors.ProfileNotFound):
        hint = "check `profile` or AWS_PROFILE against ~/.aws/config"
        return Explained(name, f"the AWS profile `{told.get('profile')}` does not exist", hint)
    if isinstance(error, botocore_errors.InfiniteLoopConfigError):
        profile = told.get("source_profile")
        hint = f"give `{profile}`, or a profile it leads to, keys of its own"
        return Explained(name, f"the AWS profile `{profile}` leads back to itself", hint)
    if isinstance(error, botocore_errors.InvalidConfigError):
        # botocore's own words about names of profiles and sections.
        meaning = f"the AWS configuration is inconsistent: {told.get('error_msg', '')}".rstrip(". ")
        return Explained(name, meaning, "mend ~/.aws/config, or the AWS_* variable it speaks of")
    if isinstance(error, botocore_errors.ConfigParseError):
        meaning = f"the file `{told.get('path')}` is not an AWS configuration"
        return Explained(name, meaning, "mend the file: `[profile NAME]` and `name = value` lines")
    if isinstance(error, botocore_errors.SSOError | botocore_errors.LoginError):
        hint = "run `aws sso login` and try again"
        return Explained(name, "the login of this AWS profile has ended", hint)
    if isinstance(
        error, botocore_errors.CredentialRetrievalError | botocore_errors.MetadataRetrievalError
    ):
        source = str(told.get("provider", ""))
        hint = _SOURCES.get(source, "check the profile's credential source")
        meaning = "the AWS credentials could not be fetched"
        return Explained(name, f"{meaning} from `{source}`" if source else meaning, hint)
    return None


def _of_network(error: botocore_errors.BotoCoreError) -> Explained | None:
    name = type(error).__name__
    retryable = isinstance(error, NO_ANSWER)
    if isinstance(error, botocore_errors.ProxyConnectionError):
        return _of_proxy(error)
    if isinstance(error, botocore_errors.SSLError):
        return _of_certificate(error)
    if isinstance(error, NEVER_SENT):
        meaning = f"the endpoint{_origin(error)} does not answer"
        hint = "check the endpoint, the region, and the network from here to AWS"
        return Explained(name, meaning, hint, retryable)
    if isinstance(error, NO_ANSWER):
        meaning = "the connection broke before an answer came"
        return Explained(name, meaning, "check the network and run again", retryable)
    return None


def _of_proxy(error: botocore_errors.ProxyConnectionError) -> Explained:
    hint = "check HTTPS_PROXY and NO_PROXY"
    refusal = proxy_refusal(error)
    if refusal is None:
        name = type(error).__name__
        return Explained(name, "the proxy does not answer", hint, retryable=True)
    code, meaning = refusal
    return Explained(code, meaning, hint, retryable=code == "ProxyRefused")


def _of_certificate(error: botocore_errors.SSLError) -> Explained:
    if problem := certificate_problem(error):
        code, what = problem
        meaning = f"the certificate of the endpoint{_origin(error)} {what}"
        return Explained(code, meaning, "compare the endpoint, its certificate and AWS_CA_BUNDLE")
    if authorities_unreadable(error):
        meaning = "the file of trusted certificates cannot be read"
        return Explained("FileUnreadable", meaning, "correct the path in AWS_CA_BUNDLE")
    hint = "check that the endpoint speaks https and its certificate is trusted (AWS_CA_BUNDLE)"
    return Explained(type(error).__name__, "the TLS connection failed", hint, True)


def _of_request(error: botocore_errors.BotoCoreError) -> Explained:
    name = type(error).__name__
    if isinstance(error, botocore_errors.InvalidRegionError):
        meaning = f"`{error.kwargs.get('region_name')}` is not a region"
        return Explained(name, meaning, "write it as AWS does: `us-east-1`")
    if isinstance(error, botocore_errors.ParamValidationError):
        meaning = "a value does not have the form AWS wants"
        return Explained(name, meaning, "check bucket, role_arn, external_id and tags")
    return Explained(name, "the call could not be made")


def _origin(error: botocore_errors.BotoCoreError) -> str:
    """Return ` scheme://host:port` of the endpoint in the error: no path, query or userinfo."""
    parts = urlsplit(str(error.kwargs.get("endpoint_url", "")))
    return f" `{parts.scheme}://{parts.netloc.rpartition('@')[2]}`" if parts.netloc else ""
