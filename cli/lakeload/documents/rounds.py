"""Settings of loads in rounds, and which tables can have them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from lakeload.config.model import Called, Model, refusal
from lakeload.config.scalars import ByteCount
from lakeload.config.secret_names import shown
from lakeload.documents.durations import duration_setting, parse_duration
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract import spec
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.traits import FORMATS

Count = Annotated[int | None, Field(ge=1, le=10**12)]


class RoundLimit(Model):
    """How much one job loads of what is new: a large load becomes several jobs, oldest first."""

    files: Count = None
    """FILES: so many files."""
    bytes: ByteCount | None = None
    """FILES: files of so many bytes together, but at least one: `10GiB`."""
    rows: Count = None
    """JDBC with a `cursor`: so many rows, and all that have the last value of the cursor."""

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if not self.given:
            raise refusal(
                "`round_limit` limits nothing", "write `{files: 1000}` or `{rows: 1000000}`"
            )
        return self

    @property
    def given(self) -> tuple[str, ...]:
        """The limits that are set."""
        return tuple(name for name in ("files", "bytes", "rows") if getattr(self, name) is not None)

    @property
    def spec(self) -> spec.RoundLimit:
        """The contract's form."""
        return spec.RoundLimit(self.files, self.bytes, self.rows)


def _age(given: Any) -> timedelta:
    age = duration_setting(given, parse_duration)
    if not _SHORTEST <= age <= _LONGEST:
        raise refusal(f"`{shown(given)}` is out of range", "an age is 1s to 7d")
    return age


_SHORTEST, _LONGEST = timedelta(seconds=1), timedelta(days=7)

Age = Annotated[
    timedelta, BeforeValidator(_age), Called("duration"), WithJsonSchema({"type": "string"})
]


class CommitAt(Model):
    """How long new data waits with an interval: until there is enough, or it is old enough."""

    bytes: ByteCount | None = None
    """FILES: until new files have so many bytes together: `128MiB`."""
    age: Age | None = None
    """Until the oldest new data has waited so long: `PT15M` or `15m`."""

    @model_validator(mode="after")
    def _waits_for_something(self) -> Self:
        if not self.given:
            raise refusal("`commit_at` waits for nothing", "write `{bytes: 128MiB, age: PT15M}`")
        return self

    @property
    def given(self) -> tuple[str, ...]:
        """The thresholds that are set."""
        return tuple(name for name in ("bytes", "age") if getattr(self, name) is not None)

    @property
    def spec(self) -> spec.CommitAt:
        """The contract's form."""
        seconds = None if self.age is None else self.age.total_seconds()
        return spec.CommitAt(self.bytes, seconds)


def loads_once_instead(
    mode: spec.Mode, read: spec.TableInput, table_format: spec.TableFormat | None
) -> str | None:
    """Return the setting with which each row is loaded once, as an action, for a table whose loads
    append all rows each time; None for any other table. `table_format` None: not known."""
    if mode != "APPEND" or read.incremental:
        return None
    replaces = not FORMATS[table_format].append_only if table_format else False
    return SOURCES[read.type].loads_once(read, replaces=replaces)


def refuse_appending(tables: Sequence[spec.TableSpec], table_format: spec.TableFormat) -> None:
    """Raise `InvalidInput` for a table that would append all of its rows in each round."""
    for table in tables:
        instead = loads_once_instead(table.mode, table.input, table_format)
        if instead is not None:
            raise InvalidInput(
                f"`{table.source}` would be appended whole in each round: its rows would be in the "
                "table once for each",
                hint=instead,
            )
