"""IAM policies of a destination: exactly the requests of a load and of the connection check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeload.config.yaml_tree import own_yaml
from lakeload.policy.model import (
    Conditions,
    Place,
    PolicyDocument,
    Statement,
    below,
    literal,
    place,
    role_is_catalogs,
)
from lakeload.policy.principals import Principal
from lakeload.policy.templates import template
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput, TableSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits, format_of
from lakeload_jobs.core.aws_partitions import domain, partition, rds_region
from lakeload_jobs.core.names import LOG_NAME, MAX_NAME_LENGTH, PROBE_NAME, normalize, schema_name
from lakeload_jobs.sources.paths.key_patterns import KeyPattern

PROBE_MARK_LENGTH = 12
"""Random characters at the end of the name of a connection test's database."""
PROBE_DATABASE = "lakeload_probe_"
"""What the name of a connection test's database has between the prefix and its mark."""
_ROOM = MAX_NAME_LENGTH - len(f"_{PROBE_DATABASE}") - PROBE_MARK_LENGTH

_ACCOUNT = re.compile(r"[0-9]{12}(?=:|$)", re.ASCII)


@dataclass(frozen=True)
class PolicyOptions:
    """What the policy is for."""

    account: str | None = None
    """12 digits: whose Glue catalog and key it is. Default: `glue_id`, or the role's account."""
    reset: bool = False
    """Also allow what `reset` and `recover --void` delete."""
    maintain: bool = False
    """Also allow what `maintain` removes from Iceberg tables, and Glue's optimizers."""
    read_only: bool = False
    """Permissions for querying only: nothing is written."""


_LOADING = PolicyOptions()


def uses_glue(destination: DestinationSpec) -> bool:
    """Whether tables of the destination are tables of Glue's catalog."""
    catalog = catalog_of(destination)
    if catalog is None:
        return destination.parquet.update_glue_catalog
    return catalog_traits(catalog).in_glue or speaks_rest(destination)


def speaks_rest(destination: DestinationSpec) -> bool:
    """Whether the catalog is Glue behind Iceberg's REST protocol.

    https://docs.aws.amazon.com/glue/latest/dg/connect-glu-iceberg-rest.html
    """
    catalog = catalog_of(destination)
    signed = catalog.sigv4 if catalog else None
    return signed is not None and signed.signing_name == "glue"


def catalog_owner(destination: DestinationSpec) -> str | None:
    """Return the account whose catalog an Iceberg destination names, None where it names none.

    Behind Iceberg's REST protocol the account is the warehouse, or how it begins.
    """
    catalog = catalog_of(destination)
    if catalog is None:
        return None
    if speaks_rest(destination):
        named = _ACCOUNT.match(catalog.warehouse or "")
        return named[0] if named else None
    return catalog.glue_id


def database_prefix(destination: DestinationSpec) -> str:
    """Return how the names of the destination's Glue databases begin; '' when only pipelines say.

    Cut where a longer one would leave no room for the rest of the test's own name.
    """
    prefix = destination.glue_database_prefix
    return normalize(prefix, lower=True, max_length=_ROOM) if prefix.strip() else ""


def role_policies(
    destination: DestinationSpec, options: PolicyOptions = _LOADING
) -> tuple[PolicyDocument, ...]:
    """Return the documents to attach to the role, or to the user that loads without one.

    `s3`, `glue` and `kms` where the destination uses them, `maintain` and `reset` where they are
    asked for (`role.yml.jinja`). When a catalog vends credentials, `s3` is for the catalog's role.
    """
    written = template("role.yml.jinja").render(_facts(destination, options))
    return tuple(
        PolicyDocument(name, tuple(_statement(sid, **made) for sid, made in statements.items()))
        for name, statements in own_yaml(written).items()
        if statements
    )


def _statement(
    sid: str,
    actions: str,
    resources: str | list[str],
    why: str,
    conditions: Conditions | None = None,
) -> Statement:
    arns = (resources,) if isinstance(resources, str) else tuple(resources)
    return Statement(sid, tuple(actions.split()), arns, why, conditions or {})


def _facts(destination: DestinationSpec, options: PolicyOptions) -> dict[str, Any]:
    """Return what the statements are written from."""
    arns, catalog, parquet = place(destination), catalog_of(destination), destination.parquet
    glue = place(destination, catalog_owner(destination) or options.account)
    signed = destination.iceberg.catalog.sigv4
    if speaks_rest(destination) and signed and signed.region:
        # Signed requests may go to another region than the bucket's.
        glue = replace(glue, region=signed.region)
    prefix = database_prefix(destination)
    probe = schema_name(
        glue_prefix=prefix,
        destination_prefix=f"{PROBE_DATABASE}x",
        source_schema=None,
        lower=True,
    ).removesuffix("x")

    def tables(names: str) -> list[str]:
        resources = ("catalog", f"database/{names}*", f"table/{names}*/*")
        return [glue.arn("glue", resource) for resource in resources]

    return {
        "destination": destination,
        "read_only": options.read_only,
        "maintain": options.maintain,
        "reset": options.reset,
        "format": format_of(destination),
        "vended": role_is_catalogs(destination),
        "bucket": arns.s3(destination.bucket),
        "below": below(destination.prefix),
        "objects": arns.s3(destination.bucket, below(destination.prefix)),
        "probe_objects": arns.s3(
            destination.bucket, below(destination.prefix, LOG_NAME, PROBE_NAME)
        ),
        "key": _key(destination, options.account),
        "glue": uses_glue(destination),
        "catalog": catalog,
        "in_glue": catalog is not None and catalog_traits(catalog).in_glue,
        "rest": speaks_rest(destination),
        "partitions": parquet.update_glue_catalog
        and parquet.partition_strategy != "NONE"
        and not parquet.partition_projection,
        "glue_catalog": glue.arn("glue", "catalog"),
        "databases": tables(prefix)[:2],
        "tables": tables(prefix),
        "probe_tables": tables(probe),
        "probe_functions": glue.arn("glue", f"userDefinedFunction/{probe}*/*"),
    }


def granting(
    destination: DestinationSpec, action: str, options: PolicyOptions = _LOADING
) -> Statement | None:
    """Return the narrowest statement that grants `action`, with this action alone; or None.

    What a load needs comes before what the connection test alone needs.
    """
    for document in role_policies(destination, options):
        for statement in document.statements:
            if action in statement.actions:
                return replace(statement, actions=(action,))
    return None


@dataclass(frozen=True)
class _Key:
    """The ARN of a KMS key, and the conditions under which it is used."""

    arn: str
    conditions: Conditions


def _key(destination: DestinationSpec, account: str | None) -> _Key | None:
    """Return the key; None when none is named: `aws/s3` asks for none.

    S3 asks in the role's name for GenerateDataKey to write and for Decrypt to read, and to finish
    an upload: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html. A
    policy cannot name a key by its alias:
    https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
    """
    named = destination.encryption.kms_key_id
    if destination.encryption.type != "SSE_KMS" or not named:
        return None
    own = place(destination, account)
    if not named.startswith("arn:"):
        named = own.arn("kms", named if named.startswith("alias/") else f"key/{named}")
    owner, _, resource = named.rpartition(":")
    conditions = _through_s3(own)
    if resource.startswith("alias/"):
        conditions["ForAnyValue:StringEquals"] = {"kms:ResourceAliases": resource}
        resource = "key/*"
    return _Key(f"{owner}:{resource}", conditions)


def key_policy(destination: DestinationSpec, account: str | None = None) -> PolicyDocument | None:
    """Return what a key of another account has to say of the role; None for a key of its own.

    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    """
    parts = (destination.encryption.kms_key_id or "").split(":")
    own = place(destination, account)
    if len(parts) < 6 or own.account in ("*", parts[4]):
        return None
    role = destination.credentials.role_arn or f"arn:{own.partition}:iam::{own.account}:root"
    actions = ("kms:GenerateDataKey", "kms:Decrypt")
    why = "in the key's own policy, `*` is the key itself"
    statement = Statement("AllowLakeload", actions, ("*",), why, _through_s3(own), (role,))
    return PolicyDocument("key", (statement,))


def _through_s3(own: Place) -> dict[str, Mapping[str, str]]:
    """Return the condition that it is S3 which asks; other partitions have other domains."""
    return {"StringEquals": {"kms:ViaService": f"s3.{own.region}.{domain(own.region)}"}}


def base_policy(
    destination: DestinationSpec,
    *,
    account: str | None,
    assumes: bool,
    tables: Sequence[TableSpec] = (),
) -> PolicyDocument | None:
    """Return the base identity's own policy, None when it needs nothing: the right to assume the
    role, to read secrets kept in AWS, and to log in to the databases of `tables` by IAM.

    `account` is the identity's (12 digits, None for any): its secrets lie there. Without `assumes`
    it is somebody else who takes the role.
    """
    statements: list[Statement] = []
    credentials = destination.credentials
    if credentials.role_arn and assumes:
        why = "the base identity becomes the role; the role's trust policy has to allow it too"
        assume = Statement("AssumeRole", ("sts:AssumeRole",), (credentials.role_arn,), why)
        statements.append(assume)
        if tags := tuple(credentials.session_tags or ()):
            statements.append(_tag_session(tags, role_arn=credentials.role_arn))
    own = Place(partition(destination.region), destination.region, account or "*")
    statements += _reading(list(references(destination)), own, "Read", "destination")
    statements += _reading(list(source_references(tables)), own, "ReadSource", "source")
    statements += _database_logins(tables, account or "*")
    return PolicyDocument("base", tuple(statements)) if statements else None


def _reading(
    named: Sequence[SecretReference], own: Place, sid: str, who: str
) -> Iterator[Statement]:
    for kind, action, plural, arn in (
        ("aws_secret", "secretsmanager:GetSecretValue", "secrets", _secret),
        ("aws_parameter", "ssm:GetParameter", "parameters", _parameter),
    ):
        if found := tuple(arn(one.name, own) for one in named if one.kind == kind):
            why = f"the {plural} that the {who} refers to are read"
            yield Statement(f"{sid}{plural.capitalize()}", (action,), found, why)


def _database_logins(tables: Sequence[TableSpec], account: str) -> Iterator[Statement]:
    """Yield the right to log in with tokens of IAM.

    https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.IAMPolicy.html
    """
    logins = [read for read in _databases(tables) if read.iam_authentication]
    found = {
        Place(partition(region), region, account).arn("rds-db", f"dbuser:*/{read.user}"): None
        for read in logins
        if (region := rds_region(read.host))
    }
    if found:
        why = "the user logs in to the database; `*` can be the resource id of the instance, `db-…`"
        yield Statement("ConnectDatabase", ("rds-db:connect",), tuple(found), why)


def _databases(tables: Sequence[TableSpec]) -> list[JdbcInput]:
    found = (facts_of(table.input).database for table in tables)
    return [read for read in found if read is not None]


def source_references(tables: Sequence[TableSpec]) -> Iterator[SecretReference]:
    """Yield the references to passwords of databases."""
    passwords = (read.password for read in _databases(tables))
    yield from dict.fromkeys(one for one in passwords if one is not None)


def references(destination: DestinationSpec) -> Iterator[SecretReference]:
    """Yield the references to secrets that the destination holds."""
    given, catalog = destination.credentials, catalog_of(destination)
    found = [given.external_id, given.access_key_id, given.secret_access_key, given.session_token]
    if catalog is not None:
        found += [catalog.client_id, catalog.client_secret, catalog.credential, catalog.token]
        found += (catalog.headers or {}).values()
    yield from dict.fromkeys(reference for reference in found if reference is not None)


def _secret(name: str, own: Place) -> str:
    """Return the ARN: Secrets Manager adds `-` and six characters to the name.

    https://docs.aws.amazon.com/secretsmanager/latest/userguide/auth-and-access_iam-policies.html
    """
    if name.startswith("arn:"):
        return name
    return own.arn("secretsmanager", f"secret:{literal(name)}-??????")


def _parameter(name: str, own: Place) -> str:
    if name.startswith("arn:"):
        return name
    return own.arn("ssm", f"parameter/{literal(name.removeprefix('/'))}")


def trust_policy(
    principals: Sequence[Principal], *, session_tags: Sequence[str] = ()
) -> PolicyDocument:
    """Return the trust policy: one statement for each ExternalId, and one for those without.

    `session_tags` are the keys of tags that they may give to the session.
    """
    groups: dict[str | None, dict[str, None]] = {}
    for principal in principals:
        groups.setdefault(principal.external_id, {})[principal.arn] = None
    statements = [
        _assume_role(number, tuple(arns), external_id)
        for number, (external_id, arns) in enumerate(groups.items(), 1)
    ]
    if session_tags:
        everybody = tuple(dict.fromkeys(principal.arn for principal in principals))
        statements.append(_tag_session(session_tags, principals=everybody))
    return PolicyDocument("trust", tuple(statements))


def _assume_role(number: int, arns: tuple[str, ...], external_id: str | None) -> Statement:
    sid = "AssumeRole" if number == 1 else f"AssumeRole{number}"
    why = f"{' and '.join(arns)} may assume the role"
    conditions: Conditions = {}
    if external_id is not None:
        why += ", with a request that carries the ExternalId"
        conditions = {"StringEquals": {"sts:ExternalId": external_id}}
    return Statement(sid, ("sts:AssumeRole",), (), why, conditions, arns)


def _tag_session(
    keys: Sequence[str], *, principals: tuple[str, ...] = (), role_arn: str = ""
) -> Statement:
    """Return what `session_tags` take, for the role's trust policy or the base identity's own.

    A statement of its own: the action has no condition key sts:ExternalId, and by itself it lets
    nobody in. https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html
    """
    why = "the session may carry the tags in `session_tags`"
    tags: Conditions = {"ForAllValues:StringEquals": {"aws:TagKeys": tuple(keys)}}
    resources = (role_arn,) if role_arn else ()
    return Statement("TagSession", ("sts:TagSession",), resources, why, tags, principals)


def source_policy(
    destination: DestinationSpec, tables: Sequence[TableSpec]
) -> PolicyDocument | None:
    """Return what reading the tables with the destination's identity takes; None for no S3.

    Tables read with credentials of their own are left out.
    """
    by_bucket: dict[str, set[str]] = {}
    for table in tables:
        facts = facts_of(table.input)
        if facts.has_credentials:
            continue
        for path in facts.objects:
            pattern = KeyPattern.parse(path)
            by_bucket.setdefault(pattern.bucket, set()).add(pattern.prefix)
    arns = Place(partition(destination.region), destination.region, "*")
    statements: list[Statement] = []
    for number, (bucket, beginnings) in enumerate(by_bucket.items(), 1):
        end = f"{number}" if len(by_bucket) > 1 else ""
        patterns = tuple(f"{literal(beginning)}*" for beginning in _shortest(beginnings))
        # IfExists: for a key that is not there HEAD answers 404 only to those who may list, and a
        # HEAD has no prefix; Spark takes the 403 that the others get for a refusal.
        limit: Conditions = {"StringLikeIfExists": {"s3:prefix": patterns}}
        why = f"the source's files in `{bucket}` are"
        objects = tuple(arns.s3(bucket, pattern) for pattern in patterns)
        statements += [
            Statement(
                f"ListSource{end}",
                ("s3:ListBucket",),
                (arns.s3(bucket),),
                f"{why} found",
                {} if "" in beginnings else limit,
            ),
            Statement(
                f"ReadSource{end}",
                ("s3:GetObject",),
                objects,
                f"{why} read; nothing is written there",
            ),
        ]
    return PolicyDocument("source", tuple(statements)) if statements else None


def _shortest(beginnings: set[str]) -> list[str]:
    """Return the beginnings that no other one covers, sorted."""
    kept: list[str] = []
    for beginning in sorted(beginnings):
        if not kept or not beginning.startswith(kept[-1]):
            kept.append(beginning)
    return kept
