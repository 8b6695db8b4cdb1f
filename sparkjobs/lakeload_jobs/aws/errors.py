"""Errors of AWS requests, told apart by code and status."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from botocore import exceptions as botocore_errors
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from lakeload_jobs.aws.network_errors import (
    authorities_unreadable,
    certificate_problem,
    proxy_refusal,
    proxy_unreached,
    start_hint,
)
from lakeload_jobs.contract.errors import Refused

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
    "custom-process": "run the profile's `credential_process` by hand: it fails, or its "
    "output is not valid",
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
            f"the AWS credentials of `{where}` are incomplete: `{missing}` is "
            f"{'set and empty' if os.environ.get(str(missing)) == '' else 'missing'}",
            f"set `{missing}`, or remove the rest of these credentials",
        )
    if isinstance(error, botocore_errors.ProfileNotFound) and not told.get("profile"):
        return Explained(name, "AWS_PROFILE is set and empty", "unset AWS_PROFILE")
    if isinstance(error, botocore_errors.ProfileNotFound):
        hint = "check `profile` or AWS_PROFILE against ~/.aws/config"
        return Explained(name, f"the AWS profile `{told.get('profile')}` does not exist", hint)
    if isinstance(error, botocore_errors.InfiniteLoopConfigError):
        profile = told.get("source_profile")
        hint = f"give `{profile}`, or a profile it leads to, keys of its own"
        return Explained(name, f"the AWS profile `{profile}` refers back to itself", hint)
    if isinstance(error, botocore_errors.InvalidConfigError):
        # botocore's own words about names of profiles and sections.
        meaning = f"the AWS configuration is inconsistent: {told.get('error_msg', '')}".rstrip(". ")
        return Explained(name, meaning, "fix ~/.aws/config, or the AWS_* variable that it names")
    if isinstance(error, botocore_errors.ConfigParseError):
        meaning = f"the file `{told.get('path')}` is not an AWS configuration"
        return Explained(name, meaning, "fix the file: `[profile NAME]` and `name = value` lines")
    if isinstance(error, botocore_errors.SSOError | botocore_errors.LoginError):
        sso = isinstance(error, botocore_errors.SSOError)
        hint = f"run `aws {'sso ' if sso else ''}login` and try again"
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
        meaning = f"the endpoint{_origin(error)} does not respond"
        elsewhere = "check the endpoint, the region, and the network from here to AWS"
        hint = start_hint(str(error.kwargs.get("endpoint_url", ""))) or elsewhere
        return Explained(name, meaning, hint, retryable)
    if isinstance(error, NO_ANSWER):
        meaning = "the connection broke before a response came"
        return Explained(name, meaning, "check the network and run again", retryable)
    return None


def _of_proxy(error: botocore_errors.ProxyConnectionError) -> Explained:
    hint = "check HTTPS_PROXY and NO_PROXY"
    refusal = proxy_refusal(error)
    if refusal is None and not proxy_unreached(error):
        meaning = "the connection through the proxy broke before a response came"
        name = botocore_errors.ConnectionClosedError.__name__
        return Explained(name, meaning, hint, retryable=True)
    if refusal is None:
        name = type(error).__name__
        return Explained(name, "the proxy does not respond", hint, retryable=True)
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
    hint = "check that the endpoint uses https and its certificate is trusted (AWS_CA_BUNDLE)"
    return Explained(type(error).__name__, "the TLS connection failed", hint, True)


def _of_request(error: botocore_errors.BotoCoreError) -> Explained:
    name = type(error).__name__
    if isinstance(error, botocore_errors.InvalidRegionError):
        meaning = f"`{error.kwargs.get('region_name')}` is not a region"
        return Explained(name, meaning, "write it as AWS does: `us-east-1`")
    if isinstance(error, botocore_errors.ParamValidationError):
        meaning = "a value does not have the form that AWS requires"
        return Explained(name, meaning, "check bucket, role_arn, external_id and tags")
    return Explained(name, "the call could not be made")


def _origin(error: botocore_errors.BotoCoreError) -> str:
    """Return ` scheme://host:port` of the endpoint in the error: no path, query or userinfo."""
    parts = urlsplit(str(error.kwargs.get("endpoint_url", "")))
    return f" `{parts.scheme}://{parts.netloc.rpartition('@')[2]}`" if parts.netloc else ""


_IAM_ACTIONS = {
    "AssumeRole": "sts:AssumeRole",
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListParts": "s3:ListMultipartUploadParts",
    "GetBucketLocation": "s3:GetBucketLocation",
    "HeadObject": "s3:GetObject",
    "GetObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "GetSecretValue": "secretsmanager:GetSecretValue",
    "GetParameter": "ssm:GetParameter",
}
_DENIED = {"AccessDenied", "AccessDeniedException", "403"}
_EXPLICIT_DENY = "with an explicit deny"
_UNKNOWN_KEY = {"InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"}
_BAD_SIGNATURE = {"SignatureDoesNotMatch", "InvalidSignatureException"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException"}
_OTHER_REGION = {"PermanentRedirect", "301", "AuthorizationHeaderMalformed"}
_NOT_AWS = {"Unknown", "502", "503", "504"}
_BUSY = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"}


class AwsError(Refused):
    """AWS, or the way to it, refused a call.

    `code` is the service's error code or, where no answer came, the kind of failure; `status` is
    the HTTP status or None without an answer; `operation` is the API operation, '' if unknown;
    `provider` is who gave expired credentials, as botocore names it.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        request_id: str | None = None,
        operation: str = "",
        hint: str | None = None,
        retryable: bool = False,
        provider: str = "",
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.provider = provider
        self.code = code
        self.status = status
        self.request_id = request_id
        self.operation = operation

    @property
    def denied(self) -> bool:
        """True when an identity was recognised and lacks a permission."""
        return self.code in _DENIED

    @property
    def action(self) -> str:
        """The IAM action of the call, '' if unknown."""
        return _IAM_ACTIONS.get(self.operation, self.operation)

    @property
    def expired(self) -> bool:
        """True when the credentials have expired, so that nothing was done."""
        return self.code in _EXPIRED

    @property
    def throttled(self) -> bool:
        """True when the service was too busy to do it."""
        return self.code in _BUSY or self.status == 429

    @property
    def not_implemented(self) -> bool:
        """True when the server has no such call, or does not know a header of it."""
        return self.status == 501 or self.code == "NotImplemented"

    @property
    def explicit_deny(self) -> bool:
        """True when AWS says that a policy has a Deny: for hints, as no code tells it."""
        return self.denied and _EXPLICIT_DENY in self.message

    @property
    def may_have_acted(self) -> bool:
        """True when the server may have carried out the request although it did not say so."""
        if self.status is None:
            return self.code in _AMBIGUOUS_CODES
        if self.status < 400 or self.status == 408:
            # AWS names what it redirects: without a name another server has answered.
            return self.code == str(self.status)
        return self.status >= 500 and not self.not_implemented


BROKEN_ANSWER = "BrokenAnswer"
"""The code of an answer that broke off where botocore has no name for it."""

_AMBIGUOUS_CODES = {ResponseParserError.__name__, BROKEN_ANSWER} | frozenset(
    name
    for name, kind in vars(botocore_errors).items()
    if isinstance(kind, type) and issubclass(kind, NO_ANSWER) and not issubclass(kind, NEVER_SENT)
)


@contextmanager
def aws_call(doing: str) -> Iterator[None]:
    """Translate every botocore exception of the block into an `AwsError` that begins with `doing`.

    `doing` is a phrase such as "listing `s3://lake/shop/`".
    """
    try:
        yield
    except botocore_errors.ClientError as error:
        raise _from_answer(doing, error) from (None if _repeats_values(error) else error)
    except botocore_errors.ParamValidationError as error:
        # Its text may repeat a value, an ExternalId among them: not even as a cause.
        raise _without_answer(doing, error) from None
    except botocore_errors.BotoCoreError as error:
        raise _without_answer(doing, error) from error
    except HTTPError as error:
        # botocore reads the body of a refusal outside its own translation where the operation's
        # answer would have been a stream.
        raise AwsError(
            f"{doing}: the connection broke before the whole response came "
            f"({type(error).__name__})",
            code=BROKEN_ANSWER,
            hint="check the network and run again",
            retryable=True,
        ) from error
    except (ResponseParserError, KeyError) as error:
        # A KeyError is an answer without what it has to contain, such as a web page's.
        raise AwsError(
            f"{doing}: the response cannot be parsed (ResponseParserError)",
            code=ResponseParserError.__name__,
            hint="check that the endpoint is an S3 or AWS endpoint, and run again",
            retryable=True,
        ) from error
    except RuntimeError as error:
        if not _of_renewal(error):
            raise
        raise AwsError(
            f"{doing}: the credentials have expired, and their source returns old ones",
            code="ExpiredCredentials",
            hint="renew them and run again",
        ) from error
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        # A token, a program or a certificate: botocore opens what the AWS settings name.
        reason = (error.strerror or type(error).__name__).lower()
        raise AwsError(
            f"{doing}: `{error.filename or 'AWS_CA_BUNDLE'}`, which the AWS settings name, cannot "
            f"be read: {reason} (FileUnreadable)",
            code="FileUnreadable",
            hint="correct the path in the profile or in the AWS_* variable that names it",
        ) from error
    except EOFError as error:
        raise AwsError(
            f"{doing}: the AWS profile requires an MFA code and there is no terminal",
            code="MfaNeeded",
            hint="log in first, for example with `aws sts get-session-token`, and use those keys",
        ) from error


def _of_renewal(error: RuntimeError) -> bool:
    """Whether botocore raised it for keys that were renewed and are old still: it has no class for
    that, so the place tells."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = trace.tb_frame.f_globals.get("__name__") if trace else ""
    return type(error) is RuntimeError and place == "botocore.credentials"


def _repeats_values(error: botocore_errors.ClientError) -> bool:
    """STS repeats the values it finds malformed, an ExternalId among them."""
    return error.operation_name == "AssumeRole" and error.response["Error"]["Code"] not in _DENIED


def _from_answer(doing: str, error: botocore_errors.ClientError) -> AwsError:
    details = error.response.get("Error", {})
    metadata = error.response.get("ResponseMetadata", {})
    code = details.get("Code") or "Unknown"
    status = metadata.get("HTTPStatusCode")
    operation = str(error.operation_name)
    text = "" if _repeats_values(error) else details.get("Message", "")
    if code in _BAD_SIGNATURE:
        # Some services go on with all that was to be signed, a session token among it.
        text = text.partition("\n")[0]
    told = f"`{code}`, HTTP {status}" if str(status) != code else f"HTTP {status}"
    sentence = f"{_meaning(code, operation)} ({told})"
    return AwsError(
        f"{doing}: {sentence}" + (f": {text}" if text else ""),
        code=code,
        status=status,
        # Not every error's body repeats the id that its header carries.
        request_id=metadata.get("RequestId")
        or metadata.get("HTTPHeaders", {}).get("x-amz-request-id"),
        operation=operation,
        hint=_hint(code, operation, text),
        retryable=code in _BUSY or status in (408, 429, 500, 502, 503, 504),
    )


_MEANINGS = {
    **dict.fromkeys(_NOT_AWS, "the response is not from AWS"),
    **dict.fromkeys(_DENIED, "access denied"),
    **dict.fromkeys(_EXPIRED, "the credentials have expired"),
    **dict.fromkeys(_OTHER_REGION, "the bucket is in another region"),
    **dict.fromkeys(_BUSY, "AWS throttles requests"),
    "NoSuchBucket": "the bucket does not exist",
}
_HINTS = {
    **dict.fromkeys(
        _UNKNOWN_KEY, "check the access key id and session token: AWS does not know them"
    ),
    **dict.fromkeys(
        _BAD_SIGNATURE, "check the secret access key, and that this machine's clock is correct"
    ),
    "RequestTimeTooSkewed": "set this machine's clock: it is more than 15 minutes off",
    **dict.fromkeys(_EXPIRED, "renew the base credentials and run again"),
    "NotImplemented": "the store does not know this call or one of its headers: if it is the "
    "checksum header, set AWS_REQUEST_CHECKSUM_CALCULATION=WHEN_REQUIRED",
    "InvalidToken": "check the session token: AWS cannot read it",
    **dict.fromkeys(_OTHER_REGION, "set `region` to the region of the bucket"),
    "NoSuchBucket": "create the bucket or correct `bucket`",
}


def _meaning(code: str, operation: str) -> str:
    if code == "ValidationError" and operation == "AssumeRole":
        return "AWS rejected a value of the request"
    return _MEANINGS.get(code, "AWS rejected the request")


def _hint(code: str, operation: str, text: str) -> str | None:
    action = _IAM_ACTIONS.get(operation, operation)
    if code in _DENIED and _EXPLICIT_DENY in text:
        return (
            f"remove or narrow the Deny for `{action}` in the policies of the role or "
            "user, the resource, the VPC endpoint or the organization: it overrides every Allow"
        )
    if code in _DENIED and operation == "AssumeRole":
        return (
            "AWS returns one error for three causes: check that the ExternalId is the one in the "
            "role's trust policy, that the role exists and trusts this identity, and that this "
            "identity may call sts:AssumeRole on it"
        )
    if code in _DENIED:
        return f"allow `{action}` on this resource in the policy of the role or user"
    if code == "ValidationError" and operation == "AssumeRole":
        return "check role_arn, and that session_duration is not above the role's maximum"
    return _HINTS.get(code)


def _without_answer(doing: str, error: botocore_errors.BotoCoreError) -> AwsError:
    told = explain(error)
    return AwsError(
        f"{doing}: {told.meaning} ({told.code})",
        code=told.code,
        hint=told.hint,
        retryable=told.retryable,
    )
