"""Causes of refused requests, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput

LAKE_FORMATION = "Lake Formation permission"
"""In every refusal of Lake Formation: "Insufficient Lake Formation permission(s): Required …"."""

_GRANT = re.compile(r"Lake Formation permission\(s\): Required (.+?)(?:$|[.;(])")
_ACTION = re.compile(r"not authorized to perform: ([a-z][a-z0-9-]*:[A-Za-z]+)")
_EXPLICIT = re.compile(
    r"with an explicit deny in (?:an?|the) ([A-Za-z -]+?)(?: policy)?(?:[,.:(]|$)"
)
_IMPLICIT = re.compile(r"because no ([A-Za-z -]+?)(?: policy)? allows")

# The words that tell the kinds apart, the more special first.
_KINDS = (
    ("service control", "an SCP of the organization"),
    ("resource control", "an RCP of the organization"),
    ("vpc endpoint", "the policy of the VPC endpoint"),
    ("boundary", "the permissions boundary of the role or user"),
    ("session", "the policy of the session"),
    ("trust", "the role's trust policy"),
    ("resource-based", "the policy of the resource itself (bucket, key or catalog)"),
    ("identity-based", "a policy of the role or user"),
)


@dataclass(frozen=True)
class Refusal:
    """What a denial says of itself. `action` is '' where it names none; so is `policy`."""

    action: str
    policy: str
    """The kind of policy, as a phrase that follows "in"."""
    explicit: bool
    """A statement says Deny; else nothing says Allow."""

    @property
    def beyond_a_grant(self) -> bool:
        """Whether no statement in a policy of the role, user or resource would help."""
        guards = (
            "an SCP",
            "an RCP",
            "the policy of the VPC",
            "the permissions boundary",
            "the policy of the session",
        )
        return self.explicit or self.policy.startswith(guards)

    @property
    def of_resource(self) -> bool:
        """Whether the policy of the bucket, key or catalog decided."""
        return self.policy.startswith("the policy of the resource")

    @property
    def cause(self) -> str:
        """The cause as a sentence; '' for the plain case, which every probe lists itself."""
        about = self.action or "this action"
        if self.explicit:
            where = self.policy or "some policy"
            return f"{where} has a Deny for {about}: no Allow elsewhere outweighs it"
        if self.policy and not self.policy.startswith("a policy"):
            return f"{self.policy} does not allow {about}: it has to, beside the role's own policy"
        return ""


def read_refusal(text: str) -> Refusal | None:
    """Return what a denial's text names, or None when it is not AWS's wording."""
    action = _ACTION.search(text)
    found = _EXPLICIT.search(text)
    explicit = found is not None or "with an explicit deny" in text
    found = found or _IMPLICIT.search(text)
    if not action and not explicit and not found:
        return None
    kind = found[1].lower() if found else ""
    policy = next((phrase for word, phrase in _KINDS if word in kind), "")
    return Refusal(action[1] if action else "", policy, explicit)


def missing_grant(text: str) -> str:
    """Return what Lake Formation says it requires, such as `Create Table on shop`; or ''."""
    found = _GRANT.search(text)
    return found[1].strip() if found else ""


CLOCK = "this machine's clock is more than 15 minutes off: compare `date -u` with the real time"

CAUSES: dict[str, tuple[str, ...]] = {
    # Identities
    "NoCredentialsError": (
        "no profile, variable, instance role or web identity gives this process an identity",
        "the variables are set in another shell, or not exported",
    ),
    "PartialCredentialsError": (
        "one half of the key is set and the other is not, or is misspelt",
        "a profile with `role_arn` names neither `source_profile` nor `credential_source`",
    ),
    "ProfileNotFound": (
        "the profile's name is misspelt in `profile` or AWS_PROFILE",
        "the profile lives in another file: see AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE",
    ),
    "InvalidConfigError": (
        "the profile refers to a profile, session or source that the AWS files do not have: "
        "`aws configure list --profile NAME` shows what is read",
    ),
    "InfiniteLoopConfigError": (
        "`source_profile` of one profile leads back to it: the last one needs keys of its own",
    ),
    "ConfigParseError": (
        "a line of the file is neither `[section]` nor `name = value`",
        "an editor left a merge mark or a byte order mark in it",
    ),
    "CredentialRetrievalError": (
        "what the profile or the environment names as the source of its keys does not give any",
        "the login behind it has ended: log in again as your company does it",
    ),
    "FileUnreadable": (
        "the path is misspelt in a profile or in an AWS_* variable",
        "the file or program is not mounted or installed in this container, or is another user's",
    ),
    "SSOTokenLoadError": (
        "nobody has logged in with this profile on this machine, or as this user: `aws sso login`",
        "the login is of another `sso_session` than the profile's",
    ),
    "UnauthorizedSSOTokenError": ("the login has ended: `aws sso login --profile NAME`",),
    "MfaNeeded": ("the profile has `mfa_serial`, and nobody is there to type the code",),
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
    "ClockSkew": (
        "no time service runs here: `timedatectl` or `chronyc tracking` tells",
        "the machine, container host or virtual machine was suspended and its clock stood still",
    ),
    "ExpiredToken": ("the temporary keys have expired: log in again", CLOCK),
    "InvalidToken": ("the session token belongs to other keys, or part of it is missing",),
    "InvalidIdentityToken": (
        "the web identity token is of another issuer than the role's identity provider, or was "
        "made for another audience (for EKS: `sts.amazonaws.com`)",
        "the account has no OIDC provider for this cluster, or its thumbprint is old",
    ),
    "ValidationError": (
        "`session_duration` is longer than the role's maximum session duration",
        "`role_arn` is not the ARN of a role: arn:aws:iam::ACCOUNT:role/PATH/NAME",
    ),
    "PackedPolicyTooLarge": ("`session_tags` are too long together: use fewer or shorter ones",),
    "RegionDisabledException": (
        "the region is one that an account has to opt into, and STS is not enabled for it: IAM "
        "console, Account settings",
    ),
    "OptInRequired": ("the account has not enabled this region or service",),
    "ResourceNotFoundException": (
        "the secret's name is misspelt, or it is another account's or region's",
    ),
    "ParameterNotFound": (
        "the parameter's name is misspelt (it begins with `/` if it has a path), or it is another "
        "account's or region's",
    ),
    # The bucket
    "NoSuchBucket": (
        "the bucket's name is misspelt, or it is not created yet",
        "the endpoint is the one of another store",
    ),
    "RegionMismatch": (
        "the bucket was created in another region than the destination assumes",
        "`bucket` names another bucket than the one that is meant",
    ),
    "OtherOwner": (
        "the bucket's name is misspelt, and an account nobody thought of owns it",
        "the lake is another account's on purpose: fine, if its owner can read what is written",
    ),
    "RequesterPays": (
        "the bucket has Requester Pays, and this identity is not of the account that owns it",
    ),
    "AllAccessDisabled": (
        "AWS has closed the bucket: see the account's health page and its bills",
    ),
    "SlowDown": ("the store is busy: try again in a minute",),
    "InternalError": ("the store itself has failed: see its status page, and try again",),
    "MethodNotAllowed": ("the store, or a gateway before it, does not offer this call",),
    "ConditionalWritesUnsupported": (
        "the store, or this version of it, does not implement conditional writes",
        "a gateway before the store drops the If-None-Match header",
    ),
    "ContentDiffers": ("a gateway between here and the store changes bodies",),
    "QuotaExceeded": ("the quota of the bucket or of its owner is used up",),
    "XMinioStorageFull": ("the store's disks are full",),
    "EncryptionIgnored": (
        "the store has no such encryption and ignores the request for it",
        "a gateway before the store drops the x-amz-server-side-encryption headers",
    ),
    "NotAStore": (
        "the port is that of the store's web console, not of its S3 interface",
        "the endpoint is a web site, or a login page of the network answers in its place",
    ),
    "SecondLevelDomainForbidden": (
        "the store wants the bucket's name in the host name: set `addressing_style: VIRTUAL`",
    ),
    # Keys of KMS
    "KMS.DisabledException": ("the key is disabled: enable it in KMS, or name another one",),
    "KMS.NotFoundException": (
        "the key is of another region than the bucket: S3 uses keys of its own region only",
        "`kms_key_id` is misspelt or the key is deleted; a key of another account needs its ARN",
    ),
    "KMS.KMSInvalidStateException": (
        "the key is waiting to be deleted or its material is not imported: cancel the deletion, "
        "or name another key",
    ),
    "KMS.InvalidKeyUsageException": (
        "the key is for signing or is asymmetric: S3 needs a symmetric key for encryption",
    ),
    # The way there
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
    "ConnectionClosedError": (
        "a firewall, proxy or load balancer cuts the connection",
        "the endpoint begins with http and its server speaks https",
        "the port is not one of an AWS service",
    ),
    "ResponseParserError": (
        "the endpoint is not that of this AWS service: a web site or another program answers",
        "a proxy answers in its place: HTTP_PROXY may want a user name and password (HTTP 407)",
    ),
    "Unknown": (
        "a proxy, firewall or gateway answered instead of AWS: its page names no AWS error",
        "the endpoint is not that of this AWS service",
    ),
    "502": (
        "a proxy or load balancer before the endpoint cannot reach it: an endpoint inside the "
        "network belongs into NO_PROXY",
        "the server behind it is down",
    ),
    "SSLError": (
        "the endpoint begins with https and its server speaks http",
        "the two sides share no version of TLS: a proxy or an old server in between",
    ),
    "CertificateUntrusted": (
        "a company's proxy or a private authority has signed it: put its certificate into a file "
        "and name that in AWS_CA_BUNDLE",
        "AWS_CA_BUNDLE names a file without this authority, or without AWS's",
    ),
    "CertificateForAnotherHost": (
        "the endpoint's host name is not the one of the certificate: use the name it was made for",
        "a bucket's name with dots in it breaks the certificate: set `addressing_style: PATH`",
    ),
    "CertificateExpired": (
        "the certificate has to be renewed by whoever runs the endpoint",
        "this machine's clock is wrong: compare `date -u` with the real time",
    ),
    "ProxyConnectionError": (
        "HTTPS_PROXY or HTTP_PROXY names a proxy that does not answer",
        "the endpoint is reached directly and belongs into NO_PROXY",
    ),
    "ProxyAuthenticationRequired": (
        "the proxy wants a user name and password: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT",
        "the endpoint is reached directly and belongs into NO_PROXY",
    ),
    "ProxyRefused": (
        "the proxy does not let this host through: have it allowed",
        "the endpoint is reached directly and belongs into NO_PROXY",
    ),
    "HTTPClientError": ("HTTPS_PROXY or HTTP_PROXY is not a URL: write it as http://HOST:PORT",),
    # Glue
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
_SAME = {
    "NotImplemented": "ConditionalWritesUnsupported",
    "PreconditionFailed": "ConditionalWritesUnsupported",
    "NoSuchUpload": "ConditionalWritesUnsupported",
    "UnrecognizedClientException": "InvalidClientTokenId",
    "ExpiredTokenException": "ExpiredToken",
    "InvalidSignatureException": "SignatureDoesNotMatch",
    "UnknownOperationException": "InvalidAction",
    "InternalServiceException": "SlowDown",
    "OperationTimeoutException": "SlowDown",
    "ThrottlingException": "SlowDown",
    "Throttling": "SlowDown",
    "503": "502",
    "504": "502",
    "ServiceUnavailable": "SlowDown",
    "InternalFailure": "InternalError",
    "PermanentRedirect": "RegionMismatch",
    "301": "RegionMismatch",
    "AuthorizationHeaderMalformed": "RegionMismatch",
    "IllegalLocationConstraintException": "RegionMismatch",
    "XMinioBucketQuotaExceeded": "QuotaExceeded",
    "SSOError": "UnauthorizedSSOTokenError",
    "LoginError": "UnauthorizedSSOTokenError",
}
CAUSES |= {code: CAUSES[like] for code, like in _SAME.items()}
CAUSES["TimedOut"] = (CAUSES["ReadTimeoutError"][0], *CAUSES["ConnectTimeoutError"])


_LAKE_FORMATION = (
    "Lake Formation governs this database or the catalog and has no grant for the role: IAM allows "
    "the call, and both have to",
    "the grant is for another role, or for a database of another name: it knows no prefixes",
)


def likely_causes(error: Exception, *, denied: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the likely causes of `error`; `denied` are those of an AccessDenied here."""
    if is_clock(error):
        return (CLOCK,)
    if is_lake_formation(error):
        return _LAKE_FORMATION
    if isinstance(error, AwsError) and error.denied:
        told = refusal(error)
        first = told.cause if told else ""
        if told and told.explicit:
            # That is certain then, and whether something allows it does not matter.
            return (first,)
        return (first, *denied) if first else denied
    if isinstance(error, InvalidInput):
        return ("the variable or file is set up for another user, shell or container",)
    return CAUSES.get(getattr(error, "code", ""), ())


def refusal(error: Exception) -> Refusal | None:
    """Return what a denial's text says of the policy that refused; None where it says nothing.

    Advice only: no verdict follows from it.
    """
    if not isinstance(error, AwsError) or not error.denied:
        return None
    return read_refusal(error.message)


def grant_hint(error: AwsError) -> str | None:
    """Return what to do about a refusal of Lake Formation; None for any other error."""
    if not is_lake_formation(error):
        return None
    grant = missing_grant(error.message)
    what = f"grant `{grant}`" if grant else "grant what is missing"
    return (
        f"{what} to the role in Lake Formation, as a data lake administrator: "
        "`lakeload policy FILE --for lake-formation` writes the commands"
    )


def is_lake_formation(error: Exception) -> bool:
    """True when Lake Formation refused and not IAM: Glue gives both the same code."""
    return isinstance(error, AwsError) and error.denied and LAKE_FORMATION in error.message


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
