"""The options of `lakeload maintain`, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, get_args

import typer

from lakeload.commands.options import parse_age
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import SECONDS_A_DAY, MaintainSpec
from lakeload_jobs.contract.spec import TableFormat
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.core.sizes import parse_size

_STEPS = FORMATS["ICEBERG"].maintenance_steps

Apply = Annotated[bool, typer.Option("--apply", help="Do it; without, only say what would be.")]
OnlySteps = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="STEP",
        help=f"Only these steps, with commas or repeated: {', '.join(_STEPS)}.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="compact: only files that may hold such rows."),
]
MaxBytes = Annotated[
    str | None,
    typer.Option("--max-bytes", metavar="SIZE", help="compact: at most this of a table: 50GiB."),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="expire: snapshots of this age: 12h, 7d. Default: what the table says, else 5d.",
    ),
]
RetainLast = Annotated[
    int | None,
    typer.Option("--retain-last", metavar="N", min=1, help="expire: never the last N snapshots."),
]
OrphansOlderThan = Annotated[
    str,
    typer.Option(
        "--orphans-older-than", metavar="AGE", help="orphans: files of this age, 24h or more."
    ),
]
AbortOlderThan = Annotated[
    str,
    typer.Option(
        "--abort-older-than",
        metavar="AGE",
        help="Branches (Iceberg) and uploads (Parquet) of this age are of dead runs. Longer than "
        "your longest load.",
    ),
]
RegisterOptimizers = Annotated[
    bool,
    typer.Option(
        "--register-glue-optimizers",
        help="Instead: let AWS Glue compact, expire and remove orphans on its own.",
    ),
]
OptimizerRole = Annotated[
    str | None,
    typer.Option("--optimizer-role", metavar="ARN", help="The role in which Glue does that."),
]


def seconds(option: str, text: str) -> int:
    """Return the seconds of an age. Raises `InvalidInput`."""
    return int(parse_age(option, text).total_seconds())


def parse_orphan_age(text: str) -> int:
    """Return the seconds of `--orphans-older-than`. Raises `InvalidInput`."""
    age = seconds("--orphans-older-than", text)
    if age < SECONDS_A_DAY:
        raise InvalidInput(
            f"`--orphans-older-than {text}` is less than 24h: a load may still be writing files of "
            "that age",
            hint="leave it out, or give 24h or more",
        )
    return age


def with_steps(
    wanted: MaintainSpec, only: Sequence[str], table_format: TableFormat
) -> MaintainSpec:
    """Return what is wanted with the steps to take, in their order.

    Raises `InvalidInput` for a step there is not, and for a flag of one that is not taken.
    """
    possible = FORMATS[table_format].maintenance_steps
    named = [name.strip() for text in only for name in text.split(",")]
    for name in named:
        if name not in possible:
            known = name in get_args(Step)
            why = f"is no step for tables of {table_format}" if known else "is no step"
            there = "there are " + ", ".join(f"`{step}`" for step in possible)
            raise InvalidInput(f"`--only {name}` {why}", hint=did_you_mean(name, possible) or there)
    steps = tuple(step for step in possible if not named or step in named)
    flags = {
        "--where": (wanted.where, "compact"),
        "--max-bytes": (wanted.max_bytes, "compact"),
        "--older-than": (wanted.older_than, "expire"),
        "--retain-last": (wanted.retain_last, "expire"),
    }
    for flag, (value, step) in flags.items():
        if value is not None and step not in steps:
            why = f"`--only` leaves `{step}` out"
            if step not in possible:
                why = f"tables of {table_format} have no such step"
            raise InvalidInput(f"`{flag}` belongs to the step `{step}`: {why}")
    return replace(wanted, steps=steps)


def refuse_beside_optimizers(only: Sequence[str] | None, wanted: MaintainSpec) -> None:
    """Raise `InvalidInput` for flags that choose what lakeload does itself."""
    if only or wanted.where is not None or wanted.max_bytes is not None:
        raise InvalidInput(
            "`--only`, `--where` and `--max-bytes` choose what lakeload does itself",
            hint="leave them out beside `--register-glue-optimizers`",
        )


def parse_max_bytes(text: str | None) -> int | None:
    """Return the bytes of `--max-bytes`. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        size = parse_size(text)
    except InvalidInput as error:
        raise InvalidInput(f"`--max-bytes`: {error.message}", hint=error.hint) from error
    if size < 1:
        raise InvalidInput(f"`--max-bytes {text}` leaves nothing to rewrite")
    return size
