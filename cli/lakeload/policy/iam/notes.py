"""What to know about the documents that does not stand in them: the companion text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from lakeload.policy.iam import glue, kms, s3
from lakeload.policy.iam.base import references
from lakeload.policy.iam.model import (
    INLINE_POLICY_LIMITS,
    LAST_CHARACTER,
    MANAGED_POLICY_LIMIT,
    TRUST_POLICY_LIMIT,
    PolicyDocument,
    other_store,
    place,
)
from lakeload.policy.iam.policy_set import ExternalId, PolicySet
from lakeload.policy.render.hcl import label
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits, format_of

_STAND_INS: dict[str, tuple[str, Callable[[ExternalId], str]]] = {
    "json": (
        "put the value in place of {}",
        lambda one: f"{one.placeholder} ({one.reference})",
    ),
    "cli": ("the commands read {} when they run", lambda one: str(one.reference)),
    "terraform": (
        "set {}; Terraform's state will hold the value",
        lambda one: f"the variable `{label(one.variable)}` to {one.reference}",
    ),
}


def notes(
    found: PolicySet, tables: tuple[TableSpec, ...] = (), *, form: str = "json"
) -> tuple[str, ...]:
    """Return what to mind, each a sentence or two; further lines that are indented are verbatim.

    `form` is how the documents are written: `json`, `cli` or `terraform`.
    """
    return (
        *_of_the_place(found),
        *_of_the_trust(found, form),
        *(_of_the_key(found) if found.shows("kms") else ()),
        *(_of_glue(found) if found.shows("glue") else ()),
        *(_of_maintenance(found) if found.shows("maintain") else ()),
        *_of_readers(found, tables),
        *_of_limits(found, form),
    )


def _of_the_place(found: PolicySet) -> Iterator[str]:
    destination = found.destination
    if other_store(destination):
        yield (
            f"The bucket is not AWS's own but at {destination.endpoints.s3}: the documents are in "
            "AWS's terms, and the store may know fewer actions and conditions, or write them "
            "differently."
        )
    if s3.role_is_catalogs(destination) and not found.asked.options.read_only:
        yield (
            "The catalog vends credentials, so the role is the one in the catalog's storage "
            "settings, and its principals are the catalog's and, for Snowflake's queries, "
            "Snowflake's compute: both have an ExternalId of their own."
        )
    elif found.role is None and not found.asked.options.read_only:
        yield "Without `credentials.role_arn` the documents are for the identity that loads itself."
    if any(":*:" in arn for one in found.attached for of in one.statements for arn in of.resources):
        yield "No account is known, so some ARNs hold `*` in its place: give `--account`."


def _of_the_trust(found: PolicySet, form: str) -> Iterator[str]:
    if found.document("trust") is None:
        return
    held = json.dumps(found.documents[0].as_json())
    stand_ins = [one for one in found.asked.external_ids if one.placeholder in held]
    if stand_ins:
        sentence, named = _STAND_INS[form]
        what = sentence.format(" and ".join(named(one) for one in stand_ins))
        yield (
            f"An ExternalId is a secret and not shown: {what}. "
            "With `--reveal-external-id` it stands in the document."
        )
    if open_to := [one.arn for one in found.asked.principals if one.external_id is None]:
        yield (
            f"Without an ExternalId {' and '.join(open_to)} can be made to use the role for "
            "somebody else (the confused deputy): set `credentials.external_id` unless the "
            "identity is yours alone."
        )
    for one in found.asked.principals:
        if one.of_session:
            yield (
                f"`{one.arn}` was made of the ARN of a session, which leaves out the role's path: "
                "if IAM says that the principal is invalid, give the role's own ARN."
            )
        if one.kind == "root":
            yield (
                f"`{one.arn}` is the whole account {one.account}: whoever is allowed "
                "sts:AssumeRole there may assume the role."
            )


def _of_the_key(found: PolicySet) -> Iterator[str]:
    destination, account = found.destination, found.asked.options.account
    if destination.encryption.type != "SSE_KMS":
        return
    if not destination.encryption.kms_key_id:
        yield (
            "The key is `aws/s3`, which asks for no permission within its account; nobody of "
            "another account can read what it encrypts."
        )
    elif document := kms.key_policy(destination, account):
        statement = json.dumps(document.statements[0].as_json(), indent=2)
        yield (
            "The key is another account's. Its owner has to add this statement to the key's own "
            "policy, beside what is there:\n"
            + "\n".join(f"  {line}" for line in statement.splitlines())
        )
    else:
        yield (
            "The key's own policy has to leave the decision to IAM, as the default one does "
            "(a statement for the account's root), or to name the role."
        )


def _of_glue(found: PolicySet) -> Iterator[str]:
    destination = found.destination
    catalog = catalog_of(destination)
    signed = catalog.sigv4 if catalog else None
    if signed is not None and not glue.uses_glue(destination):
        yield (
            f"Requests to the catalog are signed for the service `{signed.signing_name}`: what it "
            "has to allow is not in here."
        )
    if not glue.uses_glue(destination):
        return
    own = place(destination, found.asked.options.account).account
    owner = glue.catalog_owner(destination)
    if owner and own not in ("*", owner):
        yield (
            f"The Glue catalog is account {owner}'s: its resource policy has to allow the same "
            f"actions to the role of account {own}."
        )
    if not glue.database_prefix(destination):
        why = (
            "In a REST catalog databases have no prefix, so"
            if glue.speaks_rest(destination)
            else "Without `glue_database_prefix`"
        )
        yield f"{why} the Glue statements hold for every database of the account."


def _of_maintenance(found: PolicySet) -> Iterator[str]:
    if not found.asked.options.maintain:
        return
    catalog = catalog_of(found.destination)
    if catalog is None:
        yield (
            f"`maintain` needs no more for {format_of(found.destination).tables} than a load does."
        )
    elif catalog_traits(catalog).in_glue:
        yield (
            "`maintain --register-glue-optimizers` also takes iam:PassRole on the role that it "
            "names, which glue.amazonaws.com has to be allowed to assume."
        )


def _of_readers(found: PolicySet, tables: tuple[TableSpec, ...]) -> Iterator[str]:
    if found.asked.options.read_only:
        yield (
            "Athena itself also takes athena:StartQueryExecution, GetQueryExecution and "
            "GetQueryResults on the workgroup, and s3:GetBucketLocation, ListBucket, GetObject, "
            "PutObject and AbortMultipartUpload where it puts results."
        )
    if any(source_of(table.input).has_credentials(table.input) for table in tables):
        yield "The source has credentials of its own: what reading it takes is not in here."
    elif found.document("source"):
        yield "Where source objects are encrypted with a KMS key, reading takes kms:Decrypt on it."
    in_aws = [one for one in references(found.destination) if one.kind.startswith("aws_")]
    if in_aws and found.document("base"):
        yield "A secret encrypted with a KMS key of your own takes kms:Decrypt on that key too."


def _of_limits(found: PolicySet, form: str) -> Iterator[str]:
    for document in found.documents:
        if max(json.dumps(document.as_json(), ensure_ascii=False)) > LAST_CHARACTER:
            yield (
                f"The document `{document.name}` holds letters that IAM takes in no document "
                "(beyond U+00FF): write `*` in their place."
            )
        what, limit = _limit(found, document, form)
        if document.size > limit:
            yield (
                f"The document `{document.name}` has {document.size:,} characters, and IAM takes "
                f"{limit:,} in {what}: split its statements, or name fewer paths."
            )


def _limit(found: PolicySet, document: PolicyDocument, form: str) -> tuple[str, int]:
    """Return what becomes of a document, and how long that may be."""
    if document.name == "trust":
        return "a trust policy", TRUST_POLICY_LIMIT
    owner = found.base.kind if found.base else "root"
    if document.name == "base" and form != "json" and owner in INLINE_POLICY_LIMITS:
        return f"the policies embedded in a {owner}", INLINE_POLICY_LIMITS[owner]
    return "a managed policy", MANAGED_POLICY_LIMIT
