"""Identities that carry the policies of published guides, letter by letter but for placeholders."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from lakeload.demo.aws import ACCOUNT_ID, AwsAdmin, SeededLake, allow_assume_role
from tests.servers.ministack import AwsServer, Lake

FOLDER = Path(__file__).parent / "cases" / "published_policies"
REGION = "us-east-1"
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Guide:
    """One guide's documents with their placeholders; no trust policy: it makes a user."""

    source: str
    placeholders: Mapping[str, str]
    s3: Document
    glue: Document
    trust: Document | None

    @classmethod
    def read(cls, name: str) -> Guide:
        """Read tests/cases/published_policies/{name}.json."""
        return cls(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))

    def fill(self, document: Document, values: Mapping[str, str]) -> str:
        """Return the document with its placeholders replaced.

        The guides say: without a prefix the Condition block is removed.
        """
        if not values["prefix"]:
            document = _without_prefix(document, self.placeholders)
        text = json.dumps(document)
        for placeholder, meaning in self.placeholders.items():
            text = text.replace(placeholder, values[meaning])
        return text


@dataclass(frozen=True)
class Case:
    """A guide, what of it is used, and which probes warn, or are skipped for it."""

    guide: str
    prefix: str
    glue: bool
    warns: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()


# AWS checks DeleteDatabase against user-defined functions too, which no guide names. Of partitions
# the guides allow those that are new.
_GLUE_WARNS = ("glue-delete-database", "glue-update-partitions")
_GLUE_SKIPS = ("glue-create-database",)
_NO_ABORT = {"warns": ("abort-upload",), "skips": ("upload", "complete-upload")}

CASES = {
    "current": Case(
        "supaflow-s3-data-lake",
        prefix="data-lake/production",
        glue=True,
        # A condition on s3:prefix denies what does not know the key.
        warns=("list-uploads", *_GLUE_WARNS),
        skips=_GLUE_SKIPS,
    ),
    "legacy": Case("supaflow-s3", "", glue=True, warns=_GLUE_WARNS, skips=_GLUE_SKIPS),
    "airbyte": Case("airbyte-s3-data-lake", "warehouse/raw", glue=False, **_NO_ABORT),
    "estuary": Case(
        "estuary-s3-iceberg",
        prefix="flow",
        glue=True,
        warns=("list-uploads", "abort-upload"),
        skips=("upload", "complete-upload"),
    ),
}


def _without_prefix(document: Document, placeholders: Mapping[str, str]) -> Document:
    prefix = next((text for text, meaning in placeholders.items() if meaning == "prefix"), "")
    kept = [
        {k: v for k, v in statement.items() if not (k == "Condition" and prefix in json.dumps(v))}
        if prefix
        else statement
        for statement in document["Statement"]
    ]
    text = json.dumps({**document, "Statement": kept})
    found: Document = json.loads(text.replace(f"/{prefix}/*", "/*") if prefix else text)
    return found


def published(server: AwsServer, guide: Guide, *, prefix: str, glue: bool) -> Lake:
    """Make a bucket and the identity of the guide, with the policies that it gives.

    The one who assumes the role is in the account that the trust policy names, and has the name
    that it names, if any.
    """
    mark = secrets.token_hex(4)
    bucket = f"lake-{mark}"
    server.admin.create_bucket(bucket, region=REGION)
    external_id = f"ext-{secrets.token_hex(12)}"
    values = {
        "bucket": bucket,
        "prefix": prefix,
        "region": REGION,
        "account": ACCOUNT_ID,
        "external_id": external_id,
    }
    documents = {"S3": guide.fill(guide.s3, values)}
    if glue:
        documents["Glue"] = guide.fill(guide.glue, values)
    if guide.trust is None:
        user = f"loader-{mark}"
        key = server.admin.create_user(user)
        for name, document in documents.items():
            _iam(server).put_user_policy(UserName=user, PolicyName=name, PolicyDocument=document)
        return Lake(server, SeededLake(bucket, prefix, REGION, user, key, "", "", ""))
    role = f"published-{mark}"
    role_arn = f"arn:aws:iam::{ACCOUNT_ID}:role/{role}"
    principal = guide.trust["Statement"][0]["Principal"]["AWS"]
    _, _, named = principal.partition(":user/")
    vendor = AwsAdmin(server.endpoint, access_key=principal.split(":")[4])
    user = named or f"vendor-{mark}"
    key = vendor.create_user(user, allow_assume_role(role_arn))
    trust = guide.fill(guide.trust, values)
    _iam(server).create_role(RoleName=role, AssumeRolePolicyDocument=trust)
    for name, document in documents.items():
        _iam(server).put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)
    return Lake(server, SeededLake(bucket, prefix, REGION, user, key, role, role_arn, external_id))


def attach(server: AwsServer, documents: Mapping[str, Document], user: str, role: str) -> None:
    """Make a role after the documents that `lakeload policy` prints, letter by letter, and let a
    user assume it."""
    _iam(server).create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(documents["trust"]))
    put_policies(server, documents, user, role)


def put_policies(
    server: AwsServer, documents: Mapping[str, Document], user: str, role: str
) -> None:
    """Give a user and a role that are there the policies of the documents."""
    for name, document in documents.items():
        text = json.dumps(document)
        if name == "base":
            _iam(server).put_user_policy(UserName=user, PolicyName=name, PolicyDocument=text)
        elif name != "trust":
            _iam(server).put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=text)


def _iam(server: AwsServer) -> Any:
    return boto3.client(
        "iam",
        endpoint_url=server.endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
