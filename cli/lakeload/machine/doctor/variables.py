"""Environment variables that contradict each other, or change what a load does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lakeload.machine.doctor.endpoint import without_userinfo
from lakeload.machine.doctor.model import Finding, Patient, Status

_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS")


def variables(patient: Patient) -> Iterator[Finding]:
    """Look at the variables of AWS, Spark, Java and Python that surprise people."""
    found = [
        *_identity(patient),
        *_half_a_key(patient.environment),
        *_regions(patient),
        *_endpoints(patient),
        *_certificates(patient.environment),
        *_configurations(patient.environment),
        *_java(patient.environment),
        *_python(patient.environment),
    ]
    if not found:
        yield Finding("variables", Status.OK, "no environment variable is in the way")
    yield from found


def _identity(patient: Patient) -> Iterator[Finding]:
    """boto3 takes the keys of the environment before the profile of AWS_PROFILE."""
    given, destination = patient.environment, patient.need.destination
    own = destination is not None and (
        destination.credentials.profile or destination.credentials.access_key_id
    )
    if given.get("AWS_ACCESS_KEY_ID") and given.get("AWS_PROFILE") and not own:
        told = f"AWS_PROFILE is `{given['AWS_PROFILE']}`, and AWS_ACCESS_KEY_ID is set as well"
        why = "the keys win, and the profile is ignored"
        yield Finding("aws-identity", Status.WARNING, told, why, f"unset {_KEYS}")


_KEYS = "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN"


def _half_a_key(given: Mapping[str, str]) -> Iterator[Finding]:
    key, secret = given.get("AWS_ACCESS_KEY_ID"), given.get("AWS_SECRET_ACCESS_KEY")
    token = given.get("AWS_SESSION_TOKEN")
    if bool(key) != bool(secret):
        there = "AWS_ACCESS_KEY_ID" if key else "AWS_SECRET_ACCESS_KEY"
        other = "AWS_SECRET_ACCESS_KEY" if key else "AWS_ACCESS_KEY_ID"
        told = f"{there} is set without {other}"
        yield Finding("aws-keys", Status.WARNING, told, "it is half a key", f"export {other}=…")
    elif key and key.startswith("ASIA") and not token:
        told = "AWS_ACCESS_KEY_ID is a temporary key, and AWS_SESSION_TOKEN is not set"
        command = "export AWS_SESSION_TOKEN=…"
        yield Finding("aws-keys", Status.WARNING, told, "AWS refuses it without", command)
    elif key and key.startswith("AKIA") and token:
        told = "AWS_ACCESS_KEY_ID is a lasting key, and AWS_SESSION_TOKEN is set"
        why = "the token is left from other keys, and AWS refuses both together"
        yield Finding("aws-keys", Status.WARNING, told, why, "unset AWS_SESSION_TOKEN")


def _regions(patient: Patient) -> Iterator[Finding]:
    given = patient.environment
    one, other = given.get("AWS_REGION"), given.get("AWS_DEFAULT_REGION")
    if not one or not other or one == other or patient.need.destination is not None:
        # A destination names its region itself.
        return
    told = f"AWS_REGION is `{one}`, AWS_DEFAULT_REGION is `{other}`"
    why = "Python goes by AWS_DEFAULT_REGION, the AWS CLI and other programs by AWS_REGION"
    yield Finding(
        "aws-region", Status.WARNING, told, why, 'export AWS_DEFAULT_REGION="$AWS_REGION"'
    )


def _endpoints(patient: Patient) -> Iterator[Finding]:
    given, destination = patient.environment, patient.need.destination
    named = [name for name in given if name in _ENDPOINTS or name.startswith("AWS_ENDPOINT_URL_")]
    if destination is not None and destination.endpoints.s3:
        # The document's endpoint wins for S3.
        named = [name for name in named if name != "AWS_ENDPOINT_URL_S3"]
    values = {name: given[name] for name in sorted(named) if given[name]}
    if values:
        told = ", ".join(f"{name} is `{without_userinfo(url)}`" for name, url in values.items())
        why = "calls go there and not to AWS wherever the destination names no endpoint"
        yield Finding("aws-endpoint", Status.WARNING, told, why, "unset " + " ".join(values))


def _certificates(given: Mapping[str, str]) -> Iterator[Finding]:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        value = given.get(name)
        if not value or Path(value).is_file():
            continue
        status = Status.PROBLEM if name == "AWS_CA_BUNDLE" else Status.WARNING
        told = f"{name} is `{value}`, and no such file is there"
        why = "every call to AWS over https fails" if status is Status.PROBLEM else ""
        yield Finding("ca-bundle", status, told, why, f"unset {name}")


def _configurations(given: Mapping[str, str]) -> Iterator[Finding]:
    for name, files in (
        ("SPARK_CONF_DIR", "spark-env.sh"),
        ("HADOOP_CONF_DIR", "core-site.xml"),
        ("YARN_CONF_DIR", "yarn-site.xml"),
    ):
        value = given.get(name)
        if not value:
            continue
        told = f"{name} is `{value}`"
        if not Path(value).is_dir():
            told, why = f"{told}, and no such folder is there", "Spark goes on without it"
        else:
            why = f"what `{files}` and its neighbours set applies to loads too"
        yield Finding(name.lower().replace("_", "-"), Status.WARNING, told, why, f"unset {name}")


def _java(given: Mapping[str, str]) -> Iterator[Finding]:
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
        value = given.get(name, "")
        changes = [word for word in value.split() if _changes_memory(word)]
        if changes:
            told = f"{name} sets `{' '.join(changes)}`"
            why = "it applies to every Java process, beside `spark.driver_memory`"
            yield Finding("java-options", Status.WARNING, told, why, f"unset {name}")
    if address := given.get("SPARK_LOCAL_IP"):
        told = f"SPARK_LOCAL_IP is `{address}`"
        why = "Spark may bind to it, and does not start where it is no address of this machine"
        yield Finding("spark-local-ip", Status.WARNING, told, why, "unset SPARK_LOCAL_IP")


def _changes_memory(option: str) -> bool:
    return option.startswith(("-Xmx", "-Xms", "-XX:+Use", "-XX:MaxRAM", "-agentlib", "-javaagent"))


def _python(given: Mapping[str, str]) -> Iterator[Finding]:
    for name in ("PYTHONPATH", "PYTHONHOME"):
        if value := given.get(name):
            told = f"{name} is `{value}`"
            why = "what is found there comes before the packages that lakeload was installed with"
            yield Finding(name.lower(), Status.WARNING, told, why, f"unset {name}")
