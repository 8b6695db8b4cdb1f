"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeload.documents.durations import parse_interval
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput

if TYPE_CHECKING:
    from lakeload.documents.pipeline import Pipeline

Output = Annotated[OutputFormat, typer.Option("--output", help="Output format.")]
PipelineFile = Annotated[
    Path, typer.Argument(metavar="PIPELINE", help="The pipeline's configuration file.")
]
EitherFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A pipeline, for its tables, or a destination, for all that have been loaded there.",
    ),
]
DestinationFile = Annotated[
    Path | None,
    typer.Option(
        "--destination",
        metavar="FILE",
        help="The destination's configuration file, instead of the one that the pipeline names.",
        show_default=False,
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="GLOB", help="Only tables whose names match this glob; repeatable."
    ),
]
JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id",
        metavar="ID",
        help="The job's id, 1-64 of [A-Za-z0-9-]; the same id again loads only what is missing.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Load at most N rows of each table."),
]
Reload = Annotated[
    bool,
    typer.Option("--reload", help="Append all files again, including those loaded before."),
]

Schema = Annotated[
    bool | None,
    typer.Option(
        "--schema/--no-schema",
        help="In a plan also the columns. Of Parquet tables what is found without Spark, unless "
        "--schema says more; Iceberg tables take Spark, unless --no-schema says otherwise.",
        show_default=False,
    ),
]
Sample = Annotated[
    bool, typer.Option("--sample", help="In a plan also the first three rows of each table.")
]

Details = Annotated[
    list[str] | None,
    typer.Option(
        "--details",
        metavar="GLOB",
        help="In a plan the details of these tables; repeatable. Default: of all, up to ten.",
    ),
]

Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark master; overrides the pipeline."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="K=V", help="A Spark property, NAME=VALUE; repeatable."),
]


def parsed_duration(option: str, text: str, parse: Callable[[str], timedelta]) -> timedelta:
    """Return the duration of an option. Raises `InvalidInput`, which names the option."""
    try:
        return parse(text)
    except InvalidInput as error:
        raise InvalidInput(f"`{option}`: {error.message}", hint=error.hint) from None


def interval_of(every: str | None, pipeline: Pipeline) -> timedelta | None:
    """Return the interval of loads, by the flag `--every` or the pipeline. Raises
    `InvalidInput`."""
    if every is None:
        return pipeline.upload_interval
    return parsed_duration("--every", every, parse_interval)


_Verbose = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        help="Increase verbosity; repeat for debug output.",
        show_default=False,
    ),
]
_Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show only the result and errors.")]
_LogFile = Annotated[
    Path | None, typer.Option("--log-file", help="Append a detailed log to this file.")
]


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add -v, -q and --log-file to a command's signature and apply them before it runs."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        # A command may have formats of its own; JSON has the same name in all of them.
        wants_json = given.get("output") == OutputFormat.JSON
        console.configure(
            verbose=given.pop("verbose"),
            quiet=given.pop("quiet"),
            log_file=given.pop("log_file"),
            output=OutputFormat.JSON if wants_json else OutputFormat.TEXT,
        )
        command(**given)

    signature = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("verbose", keyword, default=0, annotation=_Verbose),
        inspect.Parameter("quiet", keyword, default=False, annotation=_Quiet),
        inspect.Parameter("log_file", keyword, default=None, annotation=_LogFile),
    ]
    parameters = [*signature.parameters.values(), *added]
    own = [parameter.replace(kind=keyword) for parameter in parameters]
    run.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return run


def refuse_without_file(destination: Path | None) -> None:
    """Raise `InvalidInput` for `--destination` without a pipeline."""
    if destination is not None:
        raise InvalidInput(
            "`--destination` replaces the destination of a pipeline, and no file is given",
            hint="name the pipeline as well",
        )


MIN_TIMEOUT, MAX_DURATION = 1.0, 3600.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m)?", re.ASCII)
_FACTORS = {"": 1, "s": 1, "m": 60}
_AGE = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_seconds(option: str, text: str, *, least: float = 0.0) -> float:
    """Return the seconds of `90`, `90s` or `2m`. Raises `InvalidInput` that names the option."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _FACTORS[match[2] or ""] if match else -1.0
    if not least <= seconds <= MAX_DURATION:
        raise InvalidInput(
            f"`{option} {text}` is not a time from {least:g} s to {MAX_DURATION / 60:g} m",
            hint="write it as `30s` or `2m`",
        )
    return seconds


def parse_age(option: str, text: str) -> timedelta:
    """Return the age of `0`, `90m`, `24h` or `2d`. Raises `InvalidInput` that names the option."""
    if text.strip() == "0":
        return timedelta(0)
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"`{option} {text}` is not an age", hint="write it as `0`, `90m`, `24h` or `2d`"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the block as Ctrl-C does: after it has cleaned up."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    # nohup starts us with SIGHUP ignored, and it has to stay so.
    changed = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)
