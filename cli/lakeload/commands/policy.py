"""`lakeload policy`: what to allow in AWS, written from a destination."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.policy_recipes import For, recipes_for
from lakeload_jobs.contract.errors import InvalidInput

if TYPE_CHECKING:
    from lakeload_jobs.contract.spec import DestinationSpec, TableSpec

_ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)


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
            "Default: who you are, as STS says.",
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
        bool, typer.Option("--read-only", help="For those who query: nothing is written.")
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
    Asks STS who you are unless --principal says who may assume the role.
    """
    if read_only and extra:
        raise InvalidInput(f"`--read-only` and `--with {extra[0]}` are opposites", hint="keep one")
    if target is not For.IAM:
        recipes_for(
            target,
            file,
            format_.value,
            principals=principal or (),
            read_only=read_only,
            reset=Extra.RESET in (extra or ()),
            others={
                "--only": bool(only),
                "--with maintain": Extra.MAINTAIN in (extra or ()),
                "--account": bool(account),
                "--reveal-external-id": reveal,
            },
        )
        return
    from lakeload.commands.policy_principals import principals_of
    from lakeload.policy.iam.iam import PolicyOptions
    from lakeload.policy.iam.notes import notes
    from lakeload.policy.iam.policy_set import Asked, compose, needs_principal
    from lakeload.ui.policy import show

    destination, tables = _read(file)
    if account is not None and not _ACCOUNT.fullmatch(account):
        raise InvalidInput(f"`--account {account}` is not the 12 digits of an AWS account")
    options = PolicyOptions(
        account=account,
        reset=Extra.RESET in (extra or ()),
        maintain=Extra.MAINTAIN in (extra or ()),
        read_only=read_only,
    )
    concerned = only in (None, Only.TRUST, Only.BASE)
    wanted = needs_principal(destination, options) and concerned
    who = principals_of(destination, principal or [], reveal=reveal, wanted=wanted)
    asked = Asked(options, *who, only)
    found = compose(destination, tables, asked)
    if only and not found.documents:
        raise InvalidInput(
            f"there is no document `{only}` for this destination", hint=_why_none(only)
        )
    show(found, notes(found, tables, form=format_.value), format_.value)


def _read(file: Path) -> tuple[DestinationSpec, tuple[TableSpec, ...]]:
    from lakeload.documents.load import PipelineDocument, load_either
    from lakeload.documents.spec import destination_spec, table_specs

    document = load_either(file, os.environ)
    if isinstance(document, PipelineDocument):
        return destination_spec(document.destination), table_specs(document)
    return destination_spec(document), ()


def _why_none(only: Only) -> str | None:
    reasons = {
        Only.TRUST: "there is no role: `credentials.role_arn` is not set, or `--read-only` is",
        Only.GLUE: "its tables are not in Glue",
        Only.KMS: "`encryption` names no KMS key",
        Only.SOURCE: "give a pipeline whose `s3://` source is read with the destination's identity",
        Only.MAINTAIN: "add `--with maintain`; tables of Parquet files need nothing for it",
        Only.RESET: "add `--with reset`",
        Only.BASE: "without a role and without secrets in AWS the base identity needs nothing else",
    }
    return reasons.get(only)
