"""`lakeload policy`: IAM policies and grants of a destination."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lakeload.commands.options import DestinationFile
from lakeload.ui import console
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.aws_partitions import partition

if TYPE_CHECKING:
    from lakeload.documents.load import DestinationDocument, PipelineDocument
    from lakeload.policy.recipes import Engine

_ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)


class For(StrEnum):
    """Whom something is written for."""

    IAM = "iam"
    LAKE_FORMATION = "lake-formation"
    ATHENA = "athena"
    SPARK = "spark"
    DUCKDB = "duckdb"
    PYICEBERG = "pyiceberg"
    SNOWFLAKE = "snowflake"
    TRINO = "trino"
    POSTGRES = "postgres"
    MYSQL = "mysql"


class Format(StrEnum):
    """How the documents are written."""

    JSON = "json"
    CLI = "cli"
    TERRAFORM = "terraform"


class Extra(StrEnum):
    """What the role is to be allowed beyond loading."""

    RESET = "reset"
    MAINTAIN = "maintain"


class Only(StrEnum):
    """The documents, by name."""

    TRUST = "trust"
    S3 = "s3"
    GLUE = "glue"
    KMS = "kms"
    SOURCE = "source"
    MAINTAIN = "maintain"
    RESET = "reset"
    BASE = "base"


_ENGINES = ", ".join(target for target in For if target is not For.IAM)
_FOR = f"Grants, statements and queries instead: {_ENGINES}."
_ONLY = f"One document alone: {', '.join(Only)}."


def policy(
    file: Annotated[
        Path,
        typer.Argument(
            help="A destination; or a pipeline, for what its s3:// source needs as well."
        ),
    ],
    destination: DestinationFile = None,
    target: Annotated[
        For,
        typer.Option("--for", metavar="ENGINE", help=_FOR),
    ] = For.IAM,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            "--principal",
            metavar="ARN",
            help="Who may assume the role: an account, user or role; repeatable. "
            "`ARN,external-id=env:NAME` gives one an ExternalId of its own. "
            "Default: your own identity (sts:GetCallerIdentity).",
        ),
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", metavar="FORM", help=f"{', '.join(Format)}.")
    ] = Format.JSON,
    only: Annotated[Only | None, typer.Option("--only", metavar="NAME", help=_ONLY)] = None,
    extra: Annotated[
        list[Extra] | None,
        typer.Option(
            "--with", metavar="COMMAND", help=f"Also what this needs: {', '.join(Extra)}."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Permissions for querying only: nothing is written.")
    ] = False,
    account: Annotated[
        str | None,
        typer.Option("--account", metavar="ID", help="The 12 digits of the AWS account."),
    ] = None,
    reveal: Annotated[
        bool, typer.Option("--reveal-external-id", help="Write the secret, not a placeholder.")
    ] = False,
) -> None:
    """Write the IAM policies that a destination needs, and no more.

    Trust policy, S3, Glue and KMS permissions, and the policy of the identity
    that assumes the role: JSON to paste, `aws iam` commands, or Terraform.
    Gets your identity from STS unless you name principals with --principal.
    """
    from lakeload.commands.read_document import read_document
    from lakeload.policy.database_roles import GRANTS

    extras = extra or []
    if read_only and extras:
        raise InvalidInput(f"`--read-only` and `--with {extras[0]}` are opposites", hint="keep one")
    if target is not For.IAM:
        of_grants = {
            "--format": format_ is not Format.JSON,
            "--principal": bool(principal),
            "--read-only": read_only,
            "--with": Extra.RESET in extras,
        }
        of_iam = {
            "--only": bool(only),
            "--with maintain": Extra.MAINTAIN in extras,
            "--account": bool(account),
            "--reveal-external-id": reveal,
        }
        _refuse(target, of_iam if target is For.LAKE_FORMATION else of_iam | of_grants)
        document = read_document(file, destination)
        if target.value in GRANTS:
            _show_database_role(target, document)
            return
        _show_recipes(target, document, format_, principal or [], read_only, Extra.RESET in extras)
        return
    from lakeload.documents.spec import specs_of
    from lakeload.policy.iam import PolicyOptions
    from lakeload.policy.policy_set import Asked, compose, needs_principal, notes
    from lakeload.policy.principals import principals_of
    from lakeload.ui.display import Phases
    from lakeload.ui.policy import show

    spec, tables = specs_of(read_document(file, destination))
    if account is not None and not _ACCOUNT.fullmatch(account):
        raise InvalidInput(
            f"`--account {account}` is not the 12 digits of an AWS account",
            hint="write it without dashes, as `123456789012`",
        )
    options = PolicyOptions(account, Extra.RESET in extras, Extra.MAINTAIN in extras, read_only)
    concerned = only in (None, Only.TRUST, Only.BASE)
    wanted = needs_principal(spec, options) and concerned
    with Phases(console.err, "finding who may assume the role", quiet=console.silent()):
        who = principals_of(spec, principal or [], reveal=reveal, wanted=wanted)
    found = compose(spec, tables, Asked(options, *who, only))
    if only and not found.documents:
        raise InvalidInput(
            f"there is no document `{only}` for this destination", hint=_WHY_NONE.get(only)
        )
    show(found, notes(found, tables, form=format_.value), format_.value)


_WHY_NONE = {
    Only.TRUST: "there is no role: `credentials.role_arn` is not set, or `--read-only` is",
    Only.GLUE: "its tables are not in Glue",
    Only.KMS: "`encryption` names no KMS key",
    Only.SOURCE: "give a pipeline whose `s3://` source is read with the destination's identity",
    Only.MAINTAIN: "add `--with maintain`; tables of Parquet files need nothing for it",
    Only.RESET: "add `--with reset`",
    Only.BASE: "without a role and without secrets in AWS the base identity needs nothing else",
}


def _show_recipes(
    target: For,
    document: PipelineDocument | DestinationDocument,
    form: Format,
    principals: Sequence[str],
    read_only: bool,
    reset: bool,
) -> None:
    """Show what is written for anything but IAM. `form` is that of Lake Formation's grants, and
    `principals` are those who get them."""
    from lakeload.commands.source_tables import with_found_tables
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.spec import specs_of
    from lakeload.policy.recipes import RecipeRequest, recipes
    from lakeload.ui.display import Phases
    from lakeload.ui.policy import show_snippets
    from lakeload.ui.progress import PHASES

    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        document = with_found_tables(document, "policy", keys=True, phases=phases)
    destination, tables = specs_of(document)
    request = RecipeRequest(
        now=datetime.now(UTC),
        tables=tables,
        principals=_grantees(principals, destination.region),
        read_only=read_only,
        reset=reset,
        form=form.value,
    )
    if isinstance(document, PipelineDocument):
        tracking = document.model.tracking_columns
        request = replace(request, tracking=tracking, nested=document.nested)
    show_snippets(recipes(destination, cast("Engine", target.value), request))


def _show_database_role(target: str, document: PipelineDocument | DestinationDocument) -> None:
    """Show the statements that make the user who reads the source's tables."""
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.spec import specs_of
    from lakeload.policy.database_roles import database_role
    from lakeload.ui.policy import show_snippets

    _, tables = specs_of(document)
    listed = document.model.tables if isinstance(document, PipelineDocument) else ()
    globs = frozenset(table.table for table in listed if table.is_glob)
    show_snippets([database_role(target, tables, globs)])


def _grantees(principals: Sequence[str], region: str) -> tuple[str, ...]:
    """Return the ARNs of roles and users; an external id is of no concern to a grant."""
    from lakeload.policy.principals import parse_principal

    found = tuple(parse_principal(text, partition(region))[0] for text in principals)
    for arn in found:
        if arn.endswith(":root"):
            raise InvalidInput(
                f"writing Lake Formation grants: `{arn}` is an account, and they are given to "
                "roles and users",
                hint="give the ARN of the role or user with `--principal`",
            )
    return found


def _refuse(target: For, given: Mapping[str, bool]) -> None:
    if names := [name for name, used in given.items() if used]:
        listed = ", ".join(f"`{name}`" for name in names)
        raise InvalidInput(
            f"`--for {target.value}` does not take {listed}",
            hint="leave it out; the policies of IAM are written without `--for`",
        )
