"""The options of `lakeload maintain`, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

import typer

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import ICEBERG_STEPS, PARQUET_STEPS, MaintainSpec

Apply = Annotated[bool, typer.Option("--apply", help="Do it; without, only say what would be.")]
OnlySteps = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="STEP",
        help=f"Only these steps, with commas or repeated: {', '.join(ICEBERG_STEPS)}.",
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

_DAY = 24 * 3600


def asked_for(
    *,
    apply: bool,
    where: str | None,
    max_bytes: str | None,
    older_than: str | None,
    retain_last: int | None,
    orphans_older_than: str,
    abort_older_than: str,
) -> MaintainSpec:
    """Return what the flags ask for, without steps. Raises `InvalidInput` for a bad value."""
    from lakeload.commands.durations import parse_age

    def seconds(flag: str, text: str) -> int:
        return int(parse_age(flag, text).total_seconds())

    orphans = seconds("--orphans-older-than", orphans_older_than)
    if orphans < _DAY:
        raise InvalidInput(
            f"`--orphans-older-than {orphans_older_than}` is less than 24h: a load may still be "
            "writing files of that age",
            hint="leave it out, or give 24h or more",
        )
    return MaintainSpec(
        steps=(),
        apply=apply,
        where=where,
        max_bytes=_size(max_bytes),
        older_than=None if older_than is None else seconds("--older-than", older_than),
        retain_last=retain_last,
        orphans_older_than=orphans,
        abort_older_than=seconds("--abort-older-than", abort_older_than),
    )


def steps_of(only: Sequence[str], table_format: str) -> tuple[Step, ...]:
    """Return the steps to take, in their order. Raises `InvalidInput` for one there is not."""
    from lakeload_jobs.core.names import did_you_mean

    possible = ICEBERG_STEPS if table_format == "ICEBERG" else PARQUET_STEPS
    given = [name.strip() for text in only for name in text.split(",")]
    for name in given:
        if name not in possible:
            known = name in get_args(Step)
            why = f"is no step for tables of {table_format}" if known else "is no step"
            there = "there are " + ", ".join(f"`{step}`" for step in possible)
            raise InvalidInput(f"`--only {name}` {why}", hint=did_you_mean(name, possible) or there)
    return tuple(step for step in possible if not given or step in given)


def refuse_without_effect(wanted: MaintainSpec, table_format: str) -> None:
    """Raise `InvalidInput` for a flag of a step that is not taken."""
    flags = {
        "--where": (wanted.where is not None, "compact"),
        "--max-bytes": (wanted.max_bytes is not None, "compact"),
        "--older-than": (wanted.older_than is not None, "expire"),
        "--retain-last": (wanted.retain_last is not None, "expire"),
    }
    for flag, (given, step) in flags.items():
        if given and step not in wanted.steps:
            why = f"`--only` leaves `{step}` out"
            if table_format != "ICEBERG":
                why = f"tables of {table_format} have no such step"
            raise InvalidInput(f"`{flag}` belongs to the step `{step}`: {why}")


def refuse_beside_optimizers(only: Sequence[str] | None, wanted: MaintainSpec) -> None:
    """Raise `InvalidInput` for flags that choose what lakeload does itself."""
    if only or wanted.where is not None or wanted.max_bytes is not None:
        raise InvalidInput(
            "`--only`, `--where` and `--max-bytes` choose what lakeload does itself",
            hint="leave them out beside `--register-glue-optimizers`",
        )


def _size(text: str | None) -> int | None:
    from lakeload_jobs.core.sizes import parse_size

    if text is None:
        return None
    try:
        size = parse_size(text)
    except InvalidInput as error:
        raise InvalidInput(f"`--max-bytes`: {error.message}", hint=error.hint) from error
    if size < 1:
        raise InvalidInput(f"`--max-bytes {text}` leaves nothing to rewrite")
    return size
