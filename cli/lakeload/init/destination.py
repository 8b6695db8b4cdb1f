"""destination.yml with comments for whoever goes on editing it."""

from __future__ import annotations

from collections.abc import Iterator

from lakeload.init.answers import Answers
from lakeload.init.values import yaml_text

_HEAD = """\
# Where the data goes. `lakeload schema destination` lets an editor complete and check this file.
version: 1
"""
_ROLE = """
# lakeload assumes this role; whoever runs it needs sts:AssumeRole on it. What the role has to
# allow, and whom it has to trust, `lakeload policy` writes from this file.
"""
_KEYS = """
# Secrets are references: the values are in the environment, and .env is one way to put them there.
"""
_PROFILE = """
# A profile of the AWS configuration files on the machine that runs lakeload.
"""
_DEFAULT = """
# Without `credentials` the AWS default chain decides: environment, profile, instance role, IRSA.
# credentials:
#   role_arn: arn:aws:iam::123456789012:role/lakeload
#   external_id: {env: LAKELOAD_EXTERNAL_ID}
"""
_REST_AUTH = {
    "CREDENTIAL": [
        "    credential: {env: LAKELOAD_CATALOG_CREDENTIAL}   # CLIENT_ID:CLIENT_SECRET"
    ],
    "TOKEN": ["    token: {env: LAKELOAD_CATALOG_TOKEN}"],
    "SIGV4": [
        "    sigv4: {signing_name: glue}   # requests are signed with the credentials above",
        "    access_delegation: NONE       # and so are those for the files",
    ],
    "NONE": [],
}


def destination_text(answers: Answers) -> str:
    """Return the document."""
    lines = [
        _HEAD + f"bucket: {yaml_text(answers.bucket)}",
        f"region: {yaml_text(answers.region)}",
        _prefix(answers),
        *_endpoint(answers),
        _credentials(answers),
        "\n# Server-side encryption, sent with every upload. Without it: the bucket's default.",
        "# encryption: {type: SSE_KMS, kms_key_id: alias/my-key}",
        *_format(answers),
    ]
    return "\n".join(lines) + "\n"


def _prefix(answers: Answers) -> str:
    if answers.prefix:
        return f"prefix: {yaml_text(answers.prefix)}   # everything is written below it"
    return "# prefix: data-lake/production   # empty: the bucket's root"


def _endpoint(answers: Answers) -> Iterator[str]:
    if answers.endpoint_url:
        yield f"endpoint_url: {yaml_text(answers.endpoint_url)}   # an S3-compatible store"


def _credentials(answers: Answers) -> str:
    base = [f"  profile: {yaml_text(answers.profile)}"] if answers.profile else []
    if answers.credentials == "ROLE":
        head = [_ROLE + "credentials:", f"  role_arn: {yaml_text(answers.role_arn)}"]
        return "\n".join([*head, "  external_id: {env: LAKELOAD_EXTERNAL_ID}", *base])
    if answers.credentials == "KEYS":
        keys = ("access_key_id", "secret_access_key")
        return "\n".join(
            [_KEYS + "credentials:", *(f"  {k}: {{env: LAKELOAD_{k.upper()}}}" for k in keys)]
        )
    return "\n".join([_PROFILE + "credentials:", *base]) if base else _DEFAULT.rstrip()


def _format(answers: Answers) -> Iterator[str]:
    yield f"\ntable_format: {answers.table_format}"
    if answers.in_glue:
        yield "# The first part of the names of Glue databases; the role's policy is scoped to it."
        yield f"glue_database_prefix: {yaml_text(answers.glue_prefix)}"
    yield from (_parquet(answers) if answers.table_format == "PARQUET" else _iceberg(answers))


def _parquet(answers: Answers) -> Iterator[str]:
    glue = "true    # each table is one of AWS Glue too" if answers.in_glue else "false"
    yield "parquet:"
    yield f"  update_glue_catalog: {glue}"
    yield "  partition_strategy: HOUR     # NONE, DAY, HOUR or SYNC_ID; UTC"
    yield "  # file_name_pattern: part-{supa_job_id}-{seq}"
    yield "# target_file_size: 1GiB       # encoded; larger partitions go on in another file"


def _iceberg(answers: Answers) -> Iterator[str]:
    yield "iceberg:"
    yield "  catalog:"
    yield f"    type: {answers.catalog}"
    yield from _CATALOGS[answers.catalog](answers)
    if answers.catalog in ("GLUE", "NESSIE"):
        yield "  # warehouse_location: s3://…   # inside bucket and prefix, which are the default"
    yield "  format_version: 2"
    yield "  # table_properties: {write.parquet.compression-codec: zstd}"


def _glue(answers: Answers) -> Iterator[str]:
    yield '    # glue_id: "123456789012"   # the catalog of another account'


def _rest(answers: Answers) -> Iterator[str]:
    yield f"    uri: {yaml_text(answers.catalog_uri)}"
    if answers.warehouse:
        yield f"    warehouse: {yaml_text(answers.warehouse)}"
    yield from _REST_AUTH[answers.catalog_auth]
    if answers.catalog_auth == "CREDENTIAL":
        yield "    # scope: PRINCIPAL_ROLE:ALL"
        yield "    # oauth2_server_uri: https://login.example.com/oauth/tokens"


def _nessie(answers: Answers) -> Iterator[str]:
    yield f"    uri: {yaml_text(answers.catalog_uri)}"
    yield "    ref: main    # the branch of the catalog"
    yield "    api: NATIVE  # Nessie's own interface; through its REST one nothing can be loaded"
    yield from _REST_AUTH[answers.catalog_auth]


def _open_catalog(answers: Answers) -> Iterator[str]:
    yield f"    uri: {yaml_text(answers.catalog_uri)}"
    yield f"    catalog_name: {yaml_text(answers.catalog_name)}"
    yield "    client_id: {env: LAKELOAD_CLIENT_ID}"
    yield "    client_secret: {env: LAKELOAD_CLIENT_SECRET}"
    yield "    principal_role: ALL"
    yield "    # Open Catalog takes buckets of its own region only; with this line that is checked:"
    yield f"    # catalog_region: {yaml_text(answers.region)}"


_CATALOGS = {
    "GLUE": _glue,
    "REST": _rest,
    "NESSIE": _nessie,
    "SNOWFLAKE_OPEN_CATALOG": _open_catalog,
}
