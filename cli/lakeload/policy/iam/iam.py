"""What to attach to the role: exactly what the connection test asks for and a load sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakeload.policy.iam import glue, kms, s3
from lakeload.policy.iam.model import PolicyDocument, Statement
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, catalog_traits


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
    """For those who query: nothing is written."""


_LOADING = PolicyOptions()


def role_policies(
    destination: DestinationSpec, options: PolicyOptions = _LOADING
) -> tuple[PolicyDocument, ...]:
    """Return the documents to attach to the role, or to the user that loads without one.

    `s3`, `glue` and `kms` where the destination uses them, `maintain` and `reset` where they are
    asked for. When a catalog vends credentials, `s3` is for the catalog's role.
    """
    key = kms.key_statement(destination, options.account, read_only=options.read_only)
    found = [
        PolicyDocument("s3", _s3(destination, options)),
        PolicyDocument("glue", _glue(destination, options)),
        PolicyDocument("kms", () if key is None else (key,)),
        PolicyDocument("maintain", tuple(_maintain(destination, options))),
        PolicyDocument("reset", tuple(_reset(destination, options))),
    ]
    return tuple(document for document in found if document.statements)


def granting(
    destination: DestinationSpec, action: str, options: PolicyOptions = _LOADING
) -> Statement | None:
    """Return the narrowest statement that grants `action`, with this action alone; or None.

    What a load needs comes before what the connection test alone needs.
    """
    for document in role_policies(destination, options):
        for statement in document.statements:
            if action in statement.actions:
                return Statement(
                    statement.sid,
                    (action,),
                    statement.resources,
                    statement.why,
                    statement.conditions,
                )
    return None


def _s3(destination: DestinationSpec, options: PolicyOptions) -> tuple[Statement, ...]:
    return s3.reading(destination) if options.read_only else s3.writing(destination)


def _glue(destination: DestinationSpec, options: PolicyOptions) -> tuple[Statement, ...]:
    if not glue.uses_glue(destination):
        return ()
    write = glue.reading if options.read_only else glue.writing
    return write(destination, options.account)


def _maintain(destination: DestinationSpec, options: PolicyOptions) -> Iterator[Statement]:
    # Of tables of Parquet files it aborts uploads, as a load may.
    catalog = catalog_of(destination)
    if not options.maintain or catalog is None:
        return
    if not s3.role_is_catalogs(destination):
        yield s3.maintaining(destination)
    if catalog_traits(catalog).in_glue:
        yield glue.optimizing(destination, options.account)


def _reset(destination: DestinationSpec, options: PolicyOptions) -> Iterator[Statement]:
    if not options.reset:
        return
    if not s3.role_is_catalogs(destination):
        yield s3.deleting(destination)
    if glue.uses_glue(destination):
        yield glue.deleting(destination, options.account)
