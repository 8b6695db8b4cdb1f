"""Checks of credentials, variables, proxies and the clock."""

from __future__ import annotations

import contextlib
import http.client
import re
import shlex
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lakeload.checks import CheckStatus
from lakeload.machine.doctor.model import (
    CheckContext,
    CheckResult,
    described,
    ok,
    problem,
    warning,
)
from lakeload.machine.jars.download import without_login
from lakeload_jobs.aws.clients import trusted_certificates
from lakeload_jobs.aws.credentials import CredentialSource, credential_source, local_references
from lakeload_jobs.aws.errors import AwsError
from lakeload_jobs.aws.network_errors import start_hint
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.secrets import SecretReference, resolve_locally
from lakeload_jobs.contract.spec import CredentialsSpec
from lakeload_jobs.core.aws_partitions import domain

_DEFAULT_REGION = "us-east-1"


def endpoint_of(context: CheckContext) -> str:
    """Return the URL of the destination's S3 endpoint, or of AWS's in the environment's region."""
    destination, variables = context.need.destination, context.environment
    if destination is not None and destination.endpoints.s3:
        return destination.endpoints.s3
    if variables.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if value := variables.get(name):
                return value
    region = destination.region if destination is not None else ""
    # boto3 reads AWS_DEFAULT_REGION; the other SDKs read AWS_REGION.
    region = region or variables.get("AWS_DEFAULT_REGION") or variables.get("AWS_REGION", "")
    region = region or _DEFAULT_REGION
    return f"https://s3.{region}.{domain(region)}/"


def without_userinfo(url: str) -> str:
    """Return a URL without user, password and query, for people."""
    return urlsplit(without_login(url))._replace(query="").geturl()


_METADATA = "169.254.169.254"
_IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")


def proxies(context: CheckContext) -> Iterator[CheckResult]:
    """Look at HTTP_PROXY, HTTPS_PROXY and NO_PROXY."""
    names = ("http_proxy", "https_proxy", "no_proxy")
    used = {name: _chosen(name, context.environment) for name in names}
    named = [f"{name.upper()} `{shown(value)}`" for name, value in used.items() if value]
    found = list(_surprising_proxies(context, used))
    yield from found or [ok("proxies", ", ".join(named) or "none is set")]


def shown(value: str) -> str:
    """Return the address of a proxy without user and password."""
    scheme, slashes, rest = value.rpartition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"


def proxy_for(url: str, variables: Mapping[str, str]) -> str | None:
    """Return the proxy through which Python reaches `url`, None for none."""
    parts = urlsplit(url)
    proxy = _chosen(f"{parts.scheme}_proxy", variables)
    excepted = _chosen("no_proxy", variables)
    # What boto3's rule for NO_PROXY comes down to; the types of the standard library omit it.
    bypassed: Callable[[str, dict[str, str]], bool] = vars(urllib.request)[
        "proxy_bypass_environment"
    ]
    bypass = bypassed(parts.netloc.rpartition("@")[2], {"no": excepted})
    return None if not proxy or bypass else proxy


def _chosen(name: str, variables: Mapping[str, str]) -> str:
    """The value Python takes: lower case wins, also when it is empty."""
    return variables.get(name, variables.get(name.upper(), "")).strip()


def _surprising_proxies(context: CheckContext, used: Mapping[str, str]) -> Iterator[CheckResult]:
    variables, destination = context.environment, context.need.destination
    for lower in used:
        upper = lower.upper()
        mine, theirs = variables.get(lower), variables.get(upper)
        if mine is not None and theirs is not None and mine != theirs:
            yield described(
                "proxies-differ", lower=lower, upper=upper, mine=shown(mine), theirs=shown(theirs)
            )
    for lower in ("http_proxy", "https_proxy"):
        if used[lower] and not _is_proxy(used[lower]):
            yield described("proxy-malformed", upper=lower.upper(), value=shown(used[lower]))
    if used["http_proxy"] and not used["https_proxy"]:
        yield described("https-without-proxy", value=shown(used["http_proxy"]))
    url = endpoint_of(context)
    host = urlsplit(url).hostname or ""
    yield from _ineffective_exceptions(used, host)
    local = host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")
    if local and proxy_for(url, variables) is not None:
        yield described("endpoint-through-proxy", host=host, excepted=_excepted(used, host))
    # An instance's credentials come from an address that no proxy can reach.
    given = destination.credentials if destination else None
    own = given is not None and (given.profile or given.access_key_id)
    other = own or any(variables.get(name) for name in _IDENTITY)
    if not other and proxy_for(f"http://{_METADATA}/", variables) is not None:
        excepted = _excepted(used, _METADATA)
        yield described("metadata-through-proxy", host=_METADATA, excepted=excepted)


def _ineffective_exceptions(used: Mapping[str, str], host: str) -> Iterator[CheckResult]:
    """Look at parts of NO_PROXY that other programs compare in another way than boto3."""
    parts = [part.strip() for part in used["no_proxy"].split(",")]
    if parts == ["*"] or not (used["http_proxy"] or used["https_proxy"]):
        return
    if unmatched := [part for part in parts if re.search(r"[/*\s]", part)]:
        excepted = ",".join(filter(None, (_compared(part, host) for part in parts)))
        shown_parts = "`, `".join(map(shown, unmatched))
        yield described("no-proxy-unmatched", parts=shown_parts, excepted=shlex.quote(excepted))


def _compared(part: str, host: str) -> str:
    """Return what means the same to boto3; '' for a network without the endpoint's host."""
    if "://" in part:
        return urlsplit(part).hostname or ""
    if re.search(r"\s", part):
        return ",".join(part.split())
    if part.startswith("*."):
        return part[1:]
    if "/" not in part:
        return part.replace("*", "")
    with contextlib.suppress(ValueError):
        if ip_address(host) in ip_network(part, strict=False):
            return host
    return ""


def _excepted(used: Mapping[str, str], host: str) -> str:
    return shlex.quote(",".join(filter(None, [used["no_proxy"], host])))


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


REFUSED_AFTER = 300.0
"""Seconds a clock may be off: AWS takes a signature for five minutes, S3 for fifteen."""
NOTABLE = 60.0

Now = Callable[[], float]


def clock(context: CheckContext, now: Now = time.time) -> Iterator[CheckResult]:
    """Ask the endpoint for its time: one HEAD, nothing signed, no redirect followed."""
    url = endpoint_of(context)
    place = f"`{without_userinfo(url)}`"
    if context.offline:
        yield CheckResult("clock", CheckStatus.SKIPPED, "not compared with the endpoint: --offline")
        return
    proxy = proxy_for(url, context.environment)
    trouble: ssl.SSLError | None = None
    try:
        date = _date(url, proxy, context.seconds / 2, trusting=False)
    except ssl.SSLCertVerificationError as error:
        # A clock that is years off makes every certificate invalid: the time is asked for without
        # one, and what is not trusted is said.
        trouble = error
        yield described("certificate", place=place, reason=error.verify_message)
        date = _date_or_none(url, proxy, context.seconds / 2)
    except (OSError, http.client.HTTPException, ValueError) as error:
        yield _unreachable(context, without_userinfo(url), proxy, error)
        return
    if date is not None:
        yield judge_clock(context, now() - date.timestamp(), place)
    elif trouble is None:
        yield described("clock-without-date", place=place, url=shlex.quote(without_userinfo(url)))


def judge_clock(context: CheckContext, ahead: float, place: str) -> CheckResult:
    """Return the finding for a clock that is `ahead` seconds before the endpoint's."""
    off = abs(ahead)
    if off < NOTABLE:
        return ok("clock", f"within a minute of {place}")
    amount = f"{off / 60:.0f} minutes" if off >= 120 else f"{off:.0f} s"
    found = f"{amount} {'ahead of' if ahead > 0 else 'behind'} {place}"
    return described(
        "clock-off" if off < REFUSED_AFTER else "clock-refused",
        found=found,
        set_clock=context.host.install("clock"),
    )


def silent_endpoint(context: CheckContext) -> CheckResult:
    """Return the finding for an endpoint, or a name server before it, that says nothing at all."""
    url = endpoint_of(context)
    silence = TimeoutError(f"no response within {context.seconds:g} s")
    return _unreachable(
        context, without_userinfo(url), proxy_for(url, context.environment), silence
    )


class _Stay(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer: it has a Date too."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow nothing."""


def _date(url: str, proxy: str | None, seconds: float, *, trusting: bool) -> datetime | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not a URL")
    request = urllib.request.Request(  # noqa: S310 - the scheme was just looked at
        without_login(url),
        method="HEAD",
        headers={"User-Agent": "lakeload-doctor"},
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({parts.scheme: proxy} if proxy else {}),
        urllib.request.HTTPSHandler(context=_context(trusting=trusting)),
        _Stay(),
    )
    try:
        with opener.open(request, timeout=seconds) as answer:
            return _instant(answer.headers.get("Date"))
    except urllib.error.HTTPError as error:
        with error:
            return _instant(error.headers.get("Date"))
    except urllib.error.URLError as error:
        if isinstance(error.reason, OSError):
            raise error.reason from error
        raise


def _date_or_none(url: str, proxy: str | None, seconds: float) -> datetime | None:
    try:
        return _date(url, proxy, seconds, trusting=True)
    except (OSError, http.client.HTTPException, ValueError):
        return None


def _instant(date: str | None) -> datetime | None:
    if date is None:
        return None
    try:
        instant = parsedate_to_datetime(date)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _context(*, trusting: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=trusted_certificates())
    except (OSError, LakeloadError):
        # A file or a profile that is not there is a finding of its own.
        context = ssl.create_default_context()
    if trusting:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _unreachable(
    context: CheckContext, url: str, proxy: str | None, error: Exception
) -> CheckResult:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    through = f" through the proxy `{shown(proxy)}`" if proxy else ""
    found = f"`{url}` does not respond{through}: {reason}"
    needed = context.need.destination is not None
    look = "HTTPS_PROXY and NO_PROXY" if proxy else "the network, its names and its firewall"
    action = (None if proxy else start_hint(url)) or f"check {look}"
    why = f"{action}; the clock was not compared"
    command = f"curl -sSI {shlex.quote(url)}"
    status = CheckStatus.FAILED if needed else CheckStatus.WARNING
    return CheckResult("endpoint", status, found, why, command)


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


def credentials(context: CheckContext) -> Iterator[CheckResult]:
    """Ask botocore's chain, or look for the document's own keys."""
    destination = context.need.destination
    spec = destination.credentials if destination else CredentialsSpec()
    if spec.access_key_id:
        found = f"keys of the document, from {spec.access_key_id}"
        yield ok("credentials", found)
        return
    region = destination.region if destination else "us-east-1"
    try:
        source = credential_source(spec, region, asking=not context.offline)
    except AwsError as error:
        yield _refused(context, error, spec)
        return
    if source is None:
        yield _nobody(context)
        return
    yield judge_source(source, datetime.now(UTC))


def judge_source(source: CredentialSource, now: datetime) -> CheckResult:
    """Return the finding for the provider that answers."""
    found = f"from {PROVIDERS.get(source.method, source.method)}"
    if source.profile:
        found += f", profile `{source.profile}`"
    if source.key_end:
        found += f", access key …{source.key_end}"
    if source.expires is None:
        return ok("credentials", found)
    left = (source.expires - now).total_seconds()
    renew = _renewal(source.method, source.profile)
    if left <= 0:
        return problem("credentials", f"{found}: expired", "", renew)
    found += f", until {source.expires:%Y-%m-%d %H:%M} UTC"
    if left < SOON and source.method in ("env", "custom-process", "shared-credentials-file"):
        why = "they end in less than 15 minutes"
        return warning("credentials", found, why, renew)
    return ok("credentials", found)


def secrets(context: CheckContext) -> Iterator[CheckResult]:
    """Look whether the variables and files that the document refers to are there."""
    destination = context.need.destination
    own = local_references(destination.credentials) if destination else ()
    references = (*own, *context.need.references)
    missing = False
    for reference in references:
        try:
            resolve_locally(reference)
        except InvalidInput as error:
            missing = True
            yield problem("secrets", error.message, "", _provide(reference))
    if references and not missing:
        listed = ", ".join(map(str, references))
        yield ok("secrets", f"all that the document refers to are here: {listed}")


def _provide(reference: SecretReference) -> str:
    """Return the line that provides a secret; a file's is then typed, and ends with Ctrl-D."""
    if reference.kind == "env":
        return f"export {reference.name}=…"
    return f"install -m 600 /dev/stdin {shlex.quote(reference.name)}"


def _nobody(context: CheckContext) -> CheckResult:
    """Nobody answers: a problem only for a document that needs somebody."""
    found = "no AWS credentials were found"
    if context.offline:
        found += " in variables and files (--offline: container and instance were not checked)"
    profile = context.environment.get("AWS_PROFILE")
    # One with a login would have answered.
    command = "aws configure sso" + (f" --profile {shlex.quote(profile)}" if profile else "")
    if context.need.destination is None:
        why = "a destination without `credentials` needs them"
        return warning("credentials", found, why, command)
    status = CheckStatus.WARNING if context.offline else CheckStatus.FAILED
    why = "the destination takes its base identity from the AWS chain"
    return CheckResult("credentials", status, found, why, command)


def _refused(context: CheckContext, error: Exception, spec: CredentialsSpec) -> CheckResult:
    code = error.code if isinstance(error, AwsError) else ""
    hint = error.hint if isinstance(error, AwsError) and error.hint else ""
    profile = spec.profile or context.environment.get("AWS_PROFILE")
    command = {
        "PartialCredentialsError": "aws configure" + (f" --profile {profile}" if profile else ""),
        "ProfileNotFound": "aws configure list-profiles" if spec.profile else "unset AWS_PROFILE",
        "UnauthorizedSSOTokenError": _renewal("sso", profile),
        "SSOTokenLoadError": _renewal("sso", profile),
        "TokenRetrievalError": _renewal("sso", profile),
        "LoginError": _renewal("login", profile),
        "ExpiredCredentials": _renewal(getattr(error, "provider", ""), profile),
    }.get(code, _renewal("", profile))
    status = CheckStatus.FAILED if context.need.destination else CheckStatus.WARNING
    return CheckResult("credentials", status, str(error), hint, command)


def _renewal(method: str, profile: str | None) -> str:
    """Return the command that renews keys nobody renews by himself."""
    tail = f" --profile {profile}" if profile else ""
    if method in ("sso", "login"):
        return f"aws {'sso login' if method == 'sso' else 'login'}{tail}"
    if method == "env":
        return "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_SESSION_TOKEN=…"
    if method == "custom-process":
        return f"aws configure get credential_process{tail}"
    return f"aws sts get-caller-identity{tail}"


def variables(context: CheckContext) -> Iterator[CheckResult]:
    """Look at the variables of AWS, Spark, Java and Python that surprise people."""
    found = [
        *_aws_variables(context),
        *_certificates(context.environment),
        *_java_and_python(context.environment),
    ]
    yield from found or [ok("variables", "no environment variable interferes")]


def java_variables(context: CheckContext) -> Iterator[CheckResult]:
    """Look at the variables of Spark, Java and Python alone."""
    yield from _java_and_python(context.environment)


def _aws_variables(context: CheckContext) -> Iterator[CheckResult]:
    given, destination = context.environment, context.need.destination
    spec = destination.credentials if destination else CredentialsSpec()
    id_name, secret_name = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
    key, secret, token = given.get(id_name), given.get(secret_name), given.get("AWS_SESSION_TOKEN")
    # boto3 takes the keys of the environment before the profile of AWS_PROFILE.
    if key and given.get("AWS_PROFILE") and not (spec.profile or spec.access_key_id):
        yield described("keys-and-profile", profile=given["AWS_PROFILE"])
    empty = [name for name in (id_name, secret_name, "AWS_PROFILE") if given.get(name) == ""]
    spaced = [name for name in _KEYS if given.get(name, "") != given.get(name, "").strip()]
    if empty or spaced:
        yield from (described("empty-key", variable=name) for name in empty)
        yield from (described("spaced-key", variable=name) for name in spaced)
    elif bool(key) != bool(secret):
        there, other = (id_name, secret_name) if key else (secret_name, id_name)
        yield described("half-a-key", there=there, other=other)
    elif key and key.startswith("ASIA") and not token:
        yield described("temporary-key-without-token")
    elif key and key.startswith("AKIA") and token:
        yield described("lasting-key-with-token")
    one, default = given.get("AWS_REGION"), given.get("AWS_DEFAULT_REGION")
    # A destination names its region itself.
    if one and default and one != default and destination is None:
        yield described("two-regions", one=one, other=default)
    named = [name for name in given if re.fullmatch("AWS_ENDPOINT_URL(_.*)?", name) and given[name]]
    if destination is not None and destination.endpoints.s3:
        # The document's endpoint wins for S3.
        named = [name for name in named if name != "AWS_ENDPOINT_URL_S3"]
    if named:
        told = [f"{name} is `{without_userinfo(given[name])}`" for name in sorted(named)]
        yield described("endpoints", told=", ".join(told), names=" ".join(sorted(named)))


_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def _certificates(given: Mapping[str, str]) -> Iterator[CheckResult]:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        value = given.get(name)
        if value and not Path(value).is_file():
            yield described(
                "aws-ca-bundle" if name == "AWS_CA_BUNDLE" else "ca-bundle",
                variable=name,
                value=value,
            )


def _java_and_python(given: Mapping[str, str]) -> Iterator[CheckResult]:
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
        changes = [word for word in given.get(name, "").split() if word.startswith(_MEMORY)]
        if changes:
            yield described("java-options", variable=name, changes=" ".join(changes))
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        value = given.get(name)
        if value and Path(value).is_dir():
            yield described(name, value=value)
        elif value:
            finding = name.lower().replace("_", "-")
            yield described("no-conf-dir", name=finding, variable=name, value=value)
    for name in ("SPARK_LOCAL_IP", "PYTHONPATH", "PYTHONHOME"):
        if value := given.get(name):
            yield described(name, value=value)


_MEMORY = ("-Xmx", "-Xms", "-XX:+Use", "-XX:MaxRAM", "-agentlib", "-javaagent")
"""How options begin that change memory, collector or agents."""
