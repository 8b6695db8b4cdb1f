"""`lakeload policy --for`: what is no IAM policy, from grants to queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lakeload_jobs.contract.errors import InvalidInput

if TYPE_CHECKING:
    from lakeload.policy.engines.recipes import Engine, Form


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


def recipes_for(
    target: For,
    file: Path,
    form: str,
    *,
    principals: Sequence[str],
    read_only: bool,
    reset: bool,
    others: Mapping[str, bool],
) -> None:
    """Show what is written for anything but IAM. `form` is that of Lake Formation's grants, and
    `principals` are those who get them; `others` tells which options of IAM alone were given.

    Raises `InvalidInput` for an option that means nothing there.
    """
    from lakeload.documents.load import PipelineDocument, load_either
    from lakeload.documents.spec import destination_spec, table_specs
    from lakeload.policy.engines.recipes import RecipeRequest, recipes
    from lakeload.ui.policy import show_snippets

    of_grants = {
        "--format": form != "json",
        "--principal": bool(principals),
        "--read-only": read_only,
        "--with": reset,
    }
    _refuse(target, {**others, **({} if target is For.LAKE_FORMATION else of_grants)})
    document = load_either(file, os.environ)
    owner = document.destination if isinstance(document, PipelineDocument) else document
    destination = destination_spec(owner)
    asked = RecipeRequest(
        now=datetime.now(UTC),
        principals=_grantees(principals, destination.region),
        read_only=read_only,
        reset=reset,
        form=cast("Form", form),
    )
    if isinstance(document, PipelineDocument):
        asked = replace(
            asked,
            tables=table_specs(document),
            tracking=document.model.tracking_columns,
            nested=document.nested,
        )
    show_snippets(recipes(destination, cast("Engine", target.value), asked))


def _grantees(principals: Sequence[str], region: str) -> tuple[str, ...]:
    """Return the ARNs of roles and users; an external id is of no concern to a grant."""
    from lakeload.policy.iam.trust import parse_principal
    from lakeload_jobs.core.aws_partitions import partition

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
