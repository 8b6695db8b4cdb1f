"""The external volume of Snowflake, and whom the role it assumes has to trust (F74). Pure.

https://docs.snowflake.com/en/sql-reference/sql/create-external-volume and, for other stores than
AWS's, https://docs.snowflake.com/en/user-guide/tables-iceberg-s3-compatible
"""

from __future__ import annotations

import json

from lakeload.policy.engines.snowflake_catalog import READER_ROLE
from lakeload.policy.iam.arns import other_store
from lakeload.policy.iam.iam import PolicyOptions
from lakeload.policy.iam.policy_set import needs_principal
from lakeload.policy.iam.trust import Principal, trust_policy
from lakeload.policy.text.snippets import Snippet, snowflake_text, words
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.aws_partitions import partition
from lakeload_jobs.formats.iceberg.rules.catalog_uris import warehouse_location

_EXTERNAL_ID = "<VOLUME_EXTERNAL_ID>"

_VOLUME_PRINCIPAL = ("STORAGE_AWS_IAM_USER_ARN", "VOLUME_EXTERNAL_ID")
_CATALOG_PRINCIPAL = ("API_AWS_IAM_USER_ARN", "CATALOG_EXTERNAL_ID")
_OPEN_CATALOG_PRINCIPAL = ("OPEN_CATALOG_IAM_USER_ARN", "OPEN_CATALOG_EXTERNAL_ID")
_PROVIDERS = {"aws-us-gov": "S3GOV", "aws-cn": "S3CHINA"}
_INDENT = " " * 6


def check_bucket(destination: DestinationSpec) -> None:
    """Raise `InvalidInput` for a bucket that no external volume can be made for."""
    if "." in destination.bucket and other_store(destination) is None:
        raise InvalidInput(
            f"writing statements for Snowflake: the bucket `{destination.bucket}` has a dot in "
            "its name, and Snowflake reads no such bucket of S3",
            hint="keep tables that Snowflake is to read in a bucket without dots",
        )


def external_volume(destination: DestinationSpec, volume: str) -> Snippet:
    """Return CREATE EXTERNAL VOLUME for everything the destination writes."""
    base = warehouse_location(destination)
    store = other_store(destination)
    lines = _on_aws(destination, base) if store is None else _elsewhere(store, base)
    named = [f"NAME = {snowflake_text(words(destination.bucket))}", *lines]
    inner = "\n".join(f"{_INDENT}{line}" for line in named)
    why = _why_aws(destination) if store is None else _WHY_ELSEWHERE
    if destination.iceberg.catalog.type not in ("GLUE", "NESSIE"):
        why += (
            "\nThe catalog decides where its tables lie: if that is elsewhere in the bucket, write "
            "that place as STORAGE_BASE_URL."
        )
    return Snippet(
        "an external volume",
        f"CREATE EXTERNAL VOLUME IF NOT EXISTS {volume}\n"
        f"  STORAGE_LOCATIONS = (\n    (\n{inner}\n    )\n  )\n  ALLOW_WRITES = FALSE;",
        why,
    )


_WHY_ELSEWHERE = (
    "Replace <ACCESS_KEY_ID> and <SECRET_ACCESS_KEY> by keys that may read the bucket. Snowflake "
    "has to reach the store over TLS."
)


def _why_aws(destination: DestinationSpec) -> str:
    return (
        f"Replace {_EXTERNAL_ID} by a secret of your choice, and {READER_ROLE} by a role that "
        "reads: `lakeload policy --read-only` writes its policies. The volume and Snowflake's "
        f"account should be in `{destination.region}`, as the bucket is."
    )


def _on_aws(destination: DestinationSpec, base: str) -> list[str]:
    provider = _PROVIDERS.get(partition(destination.region), "S3")
    url = f"{provider.lower()}://" + base.removeprefix("s3://").rstrip("/") + "/"
    return [
        f"STORAGE_PROVIDER = {snowflake_text(provider)}",
        f"STORAGE_BASE_URL = {snowflake_text(url)}",
        f"STORAGE_AWS_ROLE_ARN = {snowflake_text(READER_ROLE)}",
        f"STORAGE_AWS_EXTERNAL_ID = {snowflake_text(_EXTERNAL_ID)}",
        *_encryption(destination),
    ]


def _elsewhere(store: str, base: str) -> list[str]:
    url = "s3compat://" + base.removeprefix("s3://").rstrip("/") + "/"
    return [
        "STORAGE_PROVIDER = 'S3COMPAT'",
        f"STORAGE_BASE_URL = {snowflake_text(url)}",
        f"STORAGE_ENDPOINT = {snowflake_text(store)}",
        "CREDENTIALS = (",
        "  AWS_KEY_ID = '<ACCESS_KEY_ID>'",
        "  AWS_SECRET_KEY = '<SECRET_ACCESS_KEY>'",
        ")",
    ]


def volume_principal(destination: DestinationSpec, volume: str) -> tuple[Snippet, ...]:
    """Return how to trust whoever reads the bucket, and Open Catalog where it writes there."""
    if other_store(destination) is not None:
        return ()
    made = Snippet(
        "who reads the bucket",
        f"DESC EXTERNAL VOLUME {volume};",
        "STORAGE_AWS_IAM_USER_ARN and STORAGE_AWS_EXTERNAL_ID in its answer name a principal of "
        "Snowflake's compute. The trust policy of the role that reads has to name it:",
        commands=(_trust(destination, _VOLUME_PRINCIPAL),),
    )
    if destination.iceberg.catalog.type != "SNOWFLAKE_OPEN_CATALOG":
        return (made,)
    writer = Snippet(
        "who writes the catalog's metadata",
        "",
        "Open Catalog itself is another principal than Snowflake's compute, and writes table "
        "metadata to the bucket. The details of the catalog, in Open Catalog, show its IAM user "
        "ARN, its external id and its role; the trust policy of that role has to name it, beside "
        "whoever else assumes the same role:",
        commands=(_trust(destination, _OPEN_CATALOG_PRINCIPAL),),
    )
    return made, writer


def catalog_principal(destination: DestinationSpec, integration: str) -> tuple[Snippet, ...]:
    """Return how to trust whoever asks the catalog, where AWS decides about that."""
    catalog = destination.iceberg.catalog
    if catalog.type != "GLUE" and catalog.sigv4 is None:
        return ()
    return (
        Snippet(
            "who asks the catalog",
            f"DESC CATALOG INTEGRATION {integration};",
            "API_AWS_IAM_USER_ARN and API_AWS_EXTERNAL_ID in its answer name the principal that "
            "asks the catalog. A role has one trust policy, so name both principals in it:",
            commands=(_trust(destination, _VOLUME_PRINCIPAL, _CATALOG_PRINCIPAL),),
        ),
    )


def _trust(destination: DestinationSpec, *principals: tuple[str, str]) -> str:
    """Return the command that writes the trust policy for ARNs and the variables that hold their
    external ids; of a destination without a role, the policy itself."""
    if needs_principal(destination, PolicyOptions()):
        options = [f"--principal '<{arn}>,external-id=env:{name}'" for arn, name in principals]
        return " \\\n  ".join(["lakeload policy DESTINATION --only trust", *options])
    trusted = [Principal(f"<{arn}>", f"<{name}>") for arn, name in principals]
    return json.dumps(trust_policy(trusted).as_json(), indent=2)


def _encryption(destination: DestinationSpec) -> list[str]:
    encryption = destination.encryption
    if encryption.type == "SSE_S3":
        return ["ENCRYPTION = (TYPE = 'AWS_SSE_S3')"]
    if encryption.type != "SSE_KMS":
        return []
    # Snowflake takes the id of a key; it reads without one as well.
    named = encryption.kms_key_id and "alias/" not in encryption.kms_key_id
    key = f" KMS_KEY_ID = {snowflake_text(encryption.kms_key_id or '')}" if named else ""
    return [f"ENCRYPTION = (TYPE = 'AWS_SSE_KMS'{key})"]
