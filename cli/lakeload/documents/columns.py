"""Which columns of a table are loaded, under which names and with which types."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from lakeload.config.model import Called, Finding, Model, refusal, refusals
from lakeload.config.scalars import Text
from lakeload.config.secret_names import shown
from lakeload.documents.spark_types import type_problem
from lakeload_jobs.core.names import RESERVED_COLUMNS, normalize


def _column_type(given: str) -> str:
    if problem := type_problem(given):
        raise refusal(problem.message, problem.hint)
    return given


ColumnType = Annotated[Text, Called("Spark SQL type"), AfterValidator(_column_type)]


class Columns(Model):
    """Which columns, under which names, with which types. Keys are source names."""

    include: tuple[Text, ...] = ()
    """Only these columns. Default: all."""
    exclude: tuple[Text, ...] = ()
    """Not these columns."""
    rename: dict[Text, Text] = Field(default_factory=dict)
    """Source name → target name; it is normalised like any other."""
    types: dict[Text, ColumnType] = Field(default_factory=dict)
    """Source name → Spark SQL type, such as `decimal(12,2)`."""

    @model_validator(mode="after")
    def _fit_together(self) -> Columns:
        found = []
        included, excluded = set(self.include), set(self.exclude)
        for i, name in enumerate(self.exclude):
            if name in included:
                message = f"`{shown(name)}` is both included and excluded"
                found.append(Finding(message, "keep it in one of the lists", ("exclude", i)))
        for field in ("include", "exclude"):
            found += repeated(getattr(self, field), field)
        for source, target in self.rename.items():
            at = ("rename", source)
            if source in excluded or (included and source not in included):
                hint = "add it to `include`" if self.include else "remove it from `exclude`"
                message = f"`{shown(source)}` is renamed but not loaded"
                found.append(Finding(message, hint, at))
            if normalize(target).lower() in RESERVED_COLUMNS:
                message = f"`{shown(target)}` is a name lakeload and its readers use themselves"
                found.append(Finding(message, "choose another name", at))
        found += _one_target_twice(self.rename)
        if found:
            raise refusals(found)
        return self


def repeated(names: tuple[str, ...], field: str) -> list[Finding]:
    """Return a finding for each name that the list `field` has already."""
    seen: set[str] = set()
    found = []
    for i, name in enumerate(names):
        if name in seen:
            message = f"`{shown(name)}` is in the list twice"
            found.append(Finding(message, "keep one of them", (field, i)))
        seen.add(name)
    return found


def _one_target_twice(rename: dict[str, str]) -> list[Finding]:
    owner: dict[str, str] = {}
    found = []
    for source, target in rename.items():
        first = owner.setdefault(normalize(target).lower(), source)
        if first != source:
            message = f"`{shown(first)}` and `{shown(source)}` would both be `{shown(target)}`"
            found.append(Finding(message, "choose another name", ("rename", source)))
    return found
