"""Why AWS says no: likely causes by error code, the likeliest first (F76–F83).

Codes decide, with one exception: STS and Glue answer a wrong clock and a wrong secret with the same
code, and only the text tells them apart.
"""

from __future__ import annotations

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.lake.aws import AwsError

CLOCK = "this machine's clock is more than 15 minutes off: compare `date -u` with the real time"

_CAUSES: dict[str, tuple[str, ...]] = {
    "NoCredentialsError": (
        "no profile, variable, instance role or web identity gives this process an identity",
        "the variables are set in another shell, or not exported",
    ),
    "PartialCredentialsError": ("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not",),
    "ProfileNotFound": (
        "the profile's name is misspelt in `profile` or AWS_PROFILE",
        "the profile lives in another file: see AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE",
    ),
    "InvalidClientTokenId": (
        "the access key id is misspelt, deactivated or deleted",
        "the key is temporary (it begins with ASIA) and its session token is missing or another's",
        "the key belongs to another AWS partition (China, GovCloud)",
    ),
    "InvalidAccessKeyId": (
        "the access key id is misspelt, deactivated or deleted",
        "the key belongs to another store or AWS partition",
    ),
    "SignatureDoesNotMatch": (
        "the secret access key is not the one of this access key id",
        "a proxy changes the request, or its server expects another host name",
    ),
    "RequestTimeTooSkewed": (CLOCK,),
    "ExpiredToken": ("the temporary keys have expired: log in again", CLOCK),
    "InvalidToken": ("the session token belongs to other keys, or part of it is missing",),
    "NoSuchBucket": (
        "the bucket's name is misspelt, or it is not created yet",
        "the endpoint is the one of another store",
    ),
    "EndpointConnectionError": (
        "the endpoint's host name is misspelt or the region does not exist",
        "the server is down, or no route or DNS leads from here to it",
        "AWS is reached through a proxy here, and HTTPS_PROXY is not set",
    ),
    "ConnectTimeoutError": (
        "a firewall or security group drops the connection",
        "a VPC without a route to the internet lacks the endpoint of this service",
        "AWS is reached through a proxy here, and HTTPS_PROXY is not set",
    ),
    "ReadTimeoutError": (
        "the server, or a proxy before it, accepts connections and does not answer",
        "the endpoint is not that of an AWS service",
    ),
    "SSLError": (
        "the endpoint begins with https and its server speaks http",
        "the certificate is not trusted here: a company's proxy or a private authority "
        "(AWS_CA_BUNDLE)",
    ),
    "ProxyConnectionError": (
        "HTTPS_PROXY or HTTP_PROXY names a proxy that does not answer",
        "the endpoint is reached directly and belongs into NO_PROXY",
    ),
    "RegionMismatch": (
        "the bucket was created in another region than the destination assumes",
        "`bucket` names another bucket than the one that is meant",
    ),
    "ConditionalWritesUnsupported": (
        "the store, or this version of it, does not implement conditional writes",
        "a gateway before the store drops the If-None-Match header",
    ),
    "ContentDiffers": ("a gateway between here and the store changes bodies",),
    "SlowDown": ("the store is busy: try again in a minute",),
    "InvalidAction": (
        "the endpoint is not AWS's own Glue, and does not know this call",
        "a proxy or gateway lets only some calls through",
    ),
    "GlueEncryptionException": (
        "Glue's catalog is encrypted, and the KMS key's policy does not let this identity use it "
        "(kms:Decrypt, kms:Encrypt, kms:GenerateDataKey)",
    ),
    "ResourceNumberLimitExceededException": (
        "the account's quota of databases, tables or partitions in Glue is used up",
    ),
}
_CAUSES["NotImplemented"] = _CAUSES["ConditionalWritesUnsupported"]
_CAUSES["PreconditionFailed"] = _CAUSES["NoSuchUpload"] = _CAUSES["ConditionalWritesUnsupported"]
_CAUSES["ConnectionClosedError"] = _CAUSES["ReadTimeoutError"]
_CAUSES["TimedOut"] = (_CAUSES["ReadTimeoutError"][0], *_CAUSES["ConnectTimeoutError"])
_CAUSES["UnrecognizedClientException"] = _CAUSES["InvalidClientTokenId"]
_CAUSES["ExpiredTokenException"] = _CAUSES["ExpiredToken"]
_CAUSES["InvalidSignatureException"] = _CAUSES["SignatureDoesNotMatch"]
_CAUSES["UnknownOperationException"] = _CAUSES["InvalidAction"]
_CAUSES["InternalServiceException"] = _CAUSES["OperationTimeoutException"] = _CAUSES["SlowDown"]
_CAUSES["ThrottlingException"] = _CAUSES["Throttling"] = _CAUSES["SlowDown"]


def likely_causes(error: Exception, *, denied: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the likely causes of `error`; `denied` are those of an AccessDenied here."""
    if is_clock(error):
        return (CLOCK,)
    if isinstance(error, AwsError) and error.denied:
        return denied
    if isinstance(error, InvalidInput):
        return ("the variable or file is set up for another user, shell or container",)
    return _CAUSES.get(getattr(error, "code", ""), ())


def is_clock(error: Exception) -> bool:
    """True when AWS says that the request's time is wrong."""
    if not isinstance(error, AwsError):
        return False
    if error.code == "RequestTimeTooSkewed":
        return True
    told = error.message
    return error.code in ("SignatureDoesNotMatch", "InvalidSignatureException") and (
        "Signature expired" in told or "Signature not yet current" in told
    )
