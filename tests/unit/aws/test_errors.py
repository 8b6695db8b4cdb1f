"""botocore's exceptions become one error: by code and status, without a secret."""

from __future__ import annotations

import ssl
from http.client import RemoteDisconnected

import pytest
from botocore import exceptions as botocore_errors
from botocore.parsers import ResponseParserError
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError, ProtocolError, ProxyError
from urllib3.exceptions import SSLError as TransportError
from urllib3.util.ssl_match_hostname import CertificateError

from lakeload_jobs.aws import AwsError, aws_call


def client_error(
    code: str, status: int, operation: str, message: str = "server's words"
) -> botocore_errors.ClientError:
    return botocore_errors.ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {
                "HTTPStatusCode": status,
                "RequestId": "request-1",
                "HostId": "",
                "HTTPHeaders": {},
                "RetryAttempts": 0,
            },
        },
        operation,
    )


def translated(error: Exception) -> AwsError:
    with pytest.raises(AwsError) as caught, aws_call("writing `s3://lake/key`"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("code", "status", "operation", "says"),
    [
        ("AccessDenied", 403, "PutObject", "allow `s3:PutObject`"),
        ("AccessDenied", 403, "UploadPart", "allow `s3:PutObject`"),
        ("403", 403, "HeadObject", "allow `s3:GetObject`"),
        ("AccessDenied", 403, "AssumeRole", "three causes"),
        ("ValidationError", 400, "AssumeRole", "session_duration"),
        ("InvalidAccessKeyId", 403, "PutObject", "access key id"),
        ("InvalidClientTokenId", 403, "GetCallerIdentity", "access key id"),
        ("SignatureDoesNotMatch", 403, "PutObject", "secret access key"),
        ("ExpiredToken", 400, "PutObject", "renew"),
        ("RequestTimeTooSkewed", 403, "PutObject", "clock"),
        ("PermanentRedirect", 301, "ListObjectsV2", "`region`"),
        ("AuthorizationHeaderMalformed", 400, "PutObject", "`region`"),
        ("NoSuchBucket", 404, "PutObject", "`bucket`"),
    ],
)
def test_aws_denial_has_a_hint(code: str, status: int, operation: str, says: str) -> None:
    error = translated(client_error(code, status, operation))
    assert says in (error.hint or "")
    assert (error.code, error.status, error.operation) == (code, status, operation)
    assert error.request_id == "request-1"
    assert error.message.startswith("writing `s3://lake/key`: ")


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("PutObject", "s3:PutObject"),
        ("UploadPart", "s3:PutObject"),
        ("AssumeRole", "sts:AssumeRole"),
    ],
)
def test_an_explicit_deny_is_to_be_found_and_not_outweighed(operation: str, action: str) -> None:
    text = (
        "User: arn:aws:sts::1:assumed-role/r/s is not authorized to perform: x:Y on resource: z "
        "with an explicit deny in a resource-based policy"
    )
    error = translated(client_error("AccessDenied", 403, operation, text))
    assert error.explicit_deny
    assert f"remove or narrow the Deny for `{action}`" in (error.hint or "")
    assert "allow" not in (error.hint or "")


@pytest.mark.parametrize(
    ("code", "status", "retryable", "may_have_acted"),
    [
        ("AccessDenied", 403, False, False),
        ("SlowDown", 503, True, True),
        ("InternalError", 500, True, True),
        ("ThrottlingException", 400, True, False),
        ("NotImplemented", 501, False, False),
        # Not AWS's: it names its errors.
        ("302", 302, False, True),
        ("PermanentRedirect", 301, False, False),
        ("408", 408, True, True),
        ("429", 429, True, False),
    ],
)
def test_aws_status_decides_whether_the_request_was_applied(
    code: str, status: int, retryable: bool, may_have_acted: bool
) -> None:
    error = translated(client_error(code, status, "PutObject"))
    assert (error.retryable, error.may_have_acted) == (retryable, may_have_acted)


@pytest.mark.parametrize(
    ("error", "may_have_acted"),
    [
        (botocore_errors.EndpointConnectionError(endpoint_url="http://x"), False),
        (botocore_errors.ConnectTimeoutError(endpoint_url="http://x"), False),
        (botocore_errors.ReadTimeoutError(endpoint_url="http://x"), True),
        (botocore_errors.ConnectionClosedError(endpoint_url="http://x"), True),
        (botocore_errors.IncompleteReadError(actual_bytes=1, expected_bytes=2), True),
        (ResponseParserError("not XML"), True),
    ],
)
def test_missing_response_reports_whether_the_request_was_sent(
    error: Exception, may_have_acted: bool
) -> None:
    result = translated(error)
    assert result.retryable
    assert result.may_have_acted is may_have_acted
    assert (result.status, result.code) == (None, type(error).__name__)


def test_truncated_response_is_an_unknown_outcome() -> None:
    error = translated(ProtocolError("Connection broken"))
    assert (error.retryable, error.may_have_acted, error.status) == (True, True, None)


@pytest.mark.parametrize(
    "error",
    [
        client_error("ValidationError", 400, "AssumeRole", "Value 'canary' at 'externalId'"),
        botocore_errors.ParamValidationError(report="ExternalId, value: canary"),
    ],
)
def test_a_value_that_aws_finds_malformed_is_not_repeated(error: Exception) -> None:
    result = translated(error)
    assert "canary" not in f"{result} {result.hint} {result.__cause__}"


def test_a_refused_signature_does_not_repeat_what_was_signed() -> None:
    text = (
        "The request signature does not match.\n\nThe Canonical String for this request "
        "should have been\n'POST\n/\n\nx-amz-security-token:canary\n'"
    )
    result = translated(client_error("SignatureDoesNotMatch", 403, "GetDatabase", text))
    assert result.message.endswith("The request signature does not match.")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (botocore_errors.NoCredentialsError(), "AWS_PROFILE"),
        (botocore_errors.ProfileNotFound(profile="zz"), "~/.aws/config"),
        (botocore_errors.SSOTokenLoadError(error_msg="gone"), "aws sso login"),
        (botocore_errors.ProxyConnectionError(proxy_url="http://x"), "HTTPS_PROXY"),
        (botocore_errors.SSLError(endpoint_url="https://x", error=OSError("bad")), "certificate"),
        (EOFError(), "get-session-token"),
        (botocore_errors.PartialCredentialsError(provider="env", cred_var="KEY"), "set `KEY`"),
        (botocore_errors.ConfigParseError(path="/x"), "fix the file"),
        (
            botocore_errors.CredentialRetrievalError(provider="custom-process", error_msg=""),
            "`credential_process` by hand",
        ),
        (botocore_errors.InvalidRegionError(region_name="us east"), "us-east-1"),
        (FileNotFoundError(2, "No such file", "/no/token"), "correct the path"),
    ],
)
def test_a_call_that_could_not_be_made_says_what_is_missing(error: Exception, says: str) -> None:
    assert says in (translated(error).hint or "")


def test_an_endpoint_that_does_not_answer_is_named_without_path_query_or_password() -> None:
    url = "https://me:hunter2@s3.example.com:8443/lake/key?X-Amz-Signature=abc"
    error = translated(botocore_errors.EndpointConnectionError(endpoint_url=url))
    assert "the endpoint `https://s3.example.com:8443` does not respond" in error.message
    assert "the network from here to AWS" in str(error.hint)
    nowhere = botocore_errors.EndpointConnectionError(endpoint_url="http://localhost:18303/b")
    assert "`lakeload lake up`" in str(translated(nowhere).hint)
    assert "hunter2" not in error.message
    assert "X-Amz" not in error.message
    assert error.retryable


def _certificate_error(verify_code: int) -> botocore_errors.SSLError:
    inner = ssl.SSLCertVerificationError(1, "certificate verify failed")
    inner.verify_code = verify_code
    return botocore_errors.SSLError(
        endpoint_url="https://s3.example.com/lake", error=TransportError(inner)
    )


@pytest.mark.parametrize(
    ("verify_code", "code"),
    [
        (10, "CertificateExpired"),
        (18, "CertificateUntrusted"),
        (20, "CertificateUntrusted"),
        (62, "CertificateForAnotherHost"),
    ],
)
def test_certificate_error_is_classified_by_its_openssl_code(verify_code: int, code: str) -> None:
    error = translated(_certificate_error(verify_code))
    assert (error.code, error.retryable, error.may_have_acted) == (code, False, False)
    assert "`https://s3.example.com`" in error.message


@pytest.mark.parametrize(
    ("status", "code"), [(407, "ProxyAuthenticationRequired"), (403, "ProxyRefused")]
)
def test_proxy_that_rejects_differs_from_one_that_is_unreachable(status: int, code: str) -> None:
    reason = OSError(f"Tunnel connection failed: {status} some reason")
    error = translated(
        botocore_errors.ProxyConnectionError(proxy_url="http://me:hunter2@x", error=reason)
    )
    assert (error.code, error.may_have_acted) == (code, False)
    assert str(status) in error.message
    assert "hunter2" not in f"{error} {error.hint}"


@pytest.mark.parametrize(
    ("reason", "code", "may_have_acted"),
    [
        (RemoteDisconnected("closed"), "ConnectionClosedError", True),
        (ConnectionResetError(104, "reset"), "ConnectionClosedError", True),
        (NewConnectionError(HTTPConnection("proxy"), "refused"), "ProxyConnectionError", False),
        (TransportError(CertificateError("another")), "ProxyConnectionError", False),
    ],
)
def test_answer_lost_behind_a_proxy_differs_from_a_proxy_that_is_unreachable(
    reason: Exception, code: str, may_have_acted: bool
) -> None:
    inner = ProxyError("Unable to connect to proxy", reason)
    error = translated(
        botocore_errors.ProxyConnectionError(proxy_url="http://me:hunter2@x", error=inner)
    )
    assert (error.code, error.may_have_acted, error.retryable) == (code, may_have_acted, True)
    assert "hunter2" not in f"{error} {error.hint}"


def test_response_without_required_fields_is_a_service_error() -> None:
    error = translated(KeyError("GetCallerIdentityResult"))
    assert (error.code, error.may_have_acted) == ("ResponseParserError", True)
