"""Explanations of settings for `--explain`, from the models."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from lakeload.config.document import (
    Branch,
    Items,
    KeyLocation,
    Leaf,
    Location,
    Tree,
    UnfilledValue,
    as_written,
    how_to_add,
    join,
    listed,
    locate,
    quoted,
    type_hint,
    what_it_is,
    written,
)
from lakeload.config.model import FINDINGS, Finding, not_yet
from lakeload.config.page import Page
from lakeload.config.problems import MAX_PROBLEMS, Problem, Severity
from lakeload.config.secret_names import printable, shown
from lakeload.config.yaml_tree import Span
from lakeload.documents.destination import Destination
from lakeload.documents.other_products import our_setting, value_hint
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.core.names import did_you_mean, nearest


def model_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model of the mapping at `location`, None where there is none."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        found = _model_in(current)
        if found is None:
            return None
        if part in found.model_fields:
            current = found.model_fields[part].annotation
        elif not part.startswith("("):
            return None
    return _model_in(current)


def sections(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every mapping of a document with its path: `("", Pipeline)`, `("tables[]", Table)`."""
    yield path, model
    for name, field in model.model_fields.items():
        below = _model_in(field.annotation)
        if below is not None:
            is_list = get_origin(field.annotation) is tuple
            yield from sections(below, join(path, name) + ("[]" if is_list else ""))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, typing.Union, types.UnionType, typing.Annotated):
        found = [model for item in get_args(annotation) if (model := _model_in(item))]
        # Which of several is meant, a tag tells before there is a model (documents.pipeline).
        assert len(found) <= 1, f"{annotation} has more than one model"  # noqa: S101
        return found[0] if found else None
    return None


def literals(annotation: Any) -> list[Any]:
    """Return the values of a `Literal`, at whatever depth of an annotation."""
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    return [value for argument in get_args(annotation) for value in literals(argument)]


def allowed_range(owner: type[BaseModel], field: str) -> str:
    """Say between which numbers a field's value lies."""
    limits = owner.model_fields[field].metadata
    low = next(item.ge for item in limits if hasattr(item, "ge"))
    high = next(item.le for item in limits if hasattr(item, "le"))
    return f"it can be {low} to {high}"


LATER_KEYS: dict[str, dict[str, str]] = {
    "Table": {
        "exclude": "JDBC (`exclude` of a table)",
        "detect_deletes": "handling deletes (`detect_deletes`)",
    },
}

LATER_VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("Source", "type"): ("KAFKA", "MESSAGES"),
    ("Source", "format"): ("XML",),
    ("Table", "format"): ("XML",),
}


def later_key(model: str, key: str) -> Finding | None:
    """Return the finding for a key that belongs to a feature not built, else None."""
    what = LATER_KEYS.get(model, {}).get(key)
    return None if what is None else not_yet(what, "remove the line")


def later_value(model: str, field: str, value: str) -> Finding | None:
    """Return the finding for a value that belongs to a feature not built, else None."""
    if value in LATER_VALUES.get((model, field), ()):
        return not_yet(f"`{field}: {value}`")
    return None


_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


_SOURCE = "source.type"
"""The setting that says which model the source and its tables have."""


class Explainer:
    """Explains the errors of one document."""

    def __init__(self, page: Page, tree: Tree, model: type[BaseModel]) -> None:
        self._page = page
        self._tree = tree
        self._model = model

    def problems(self, error: ValidationError) -> list[Problem]:
        """Return one problem for each cause."""
        details = error.errors(include_url=False, include_input=False)
        found = [p for detail in details[:MAX_PROBLEMS] for p in self._explained(detail)]
        return _without_consequences(found)

    def finding(
        self, finding: Finding, location: Location = (), severity: Severity = "error"
    ) -> Problem:
        """Place a finding: at the setting its `at` leads to, or the key that is meant."""
        place = locate(self._tree, (*location, *finding.at))
        span = place.key_span if finding.at and place.key is not None else place.span
        message = as_written(finding.message, place)
        hint = as_written(finding.hint, place) if finding.hint else None
        return self._page.problem(severity, finding.code, message, span, hint=hint, key=place.path)

    def _explained(self, detail: Any) -> Iterator[Problem]:
        kind, location = detail["type"], tuple(detail["loc"])
        value = locate(self._tree, location).value
        if isinstance(value, Leaf) and isinstance(value.value, UnfilledValue):
            return
        if kind == "findings":
            for finding in detail["ctx"][FINDINGS][:MAX_PROBLEMS]:
                yield self.finding(finding, location)
        elif kind == "extra_forbidden":
            yield self._unknown_key(location)
        elif kind == "missing":
            yield from self._missing(location)
        elif kind == "literal_error":
            yield self._not_one_of(location)
        elif kind == "too_short":
            yield from self._too_short(location)
        elif kind in ("greater_than_equal", "less_than_equal"):
            yield self._out_of_range(location)
        else:
            yield self._wrong_type(location, _TYPES.get(kind, "another kind of value"))

    def _unknown_key(self, location: Location) -> Problem:
        key, parent = str(location[-1]), location[:-1]
        place = locate(self._tree, location)
        owner = self._owner(parent)
        later = later_key(owner.__name__, key)
        if later is not None:
            return self._problem(place.key_span, place, later.code, later.message, later.hint)
        known = list(owner.model_fields)
        in_destination = self._model is Destination or location[0] == "destination"
        theirs = our_setting(key, "destination" if in_destination else "pipeline")
        dotted = self._dotted(key, known)
        # Theirs before the likes of it, but not before one of ours that stands elsewhere.
        elsewhere = self._belongs(key)
        hint = (elsewhere if theirs else did_you_mean(key, known)) or theirs
        hint = dotted or hint or elsewhere or listed(known)
        message = f"unknown key `{shown(key)}`"
        return self._problem(place.key_span, place, "unknown-key", message, hint)

    def _dotted(self, key: str, known: Collection[str]) -> str | None:
        """Say how a setting is written that messages name by its path, such as `spark.reader`."""
        head, *rest = key.split(".")
        if not rest or not all(rest):
            return None
        nested = f"{head}: {{{': {'.join(rest)}: …{'}' * len(rest)}"
        if head in known:
            return f"write it as `{nested}`"
        home = self._belongs(head)
        return f"write it as `{nested}`; {home}" if home else None

    def _belongs(self, key: str) -> str | None:
        """Say where a key that exists elsewhere in the document is meant to stand."""
        homes = [path for path, model in sections(self._model) if key in model.model_fields]
        if not homes:
            return None
        return f"it belongs under `{homes[0]}`" if homes[0] else "it belongs at the top level"

    def _missing(self, location: Location) -> Iterator[Problem]:
        """A key that is only misspelled is reported once, as an unknown key."""
        key = str(location[-1])
        place = locate(self._tree, location[:-1])
        fields = self._owner(location[:-1]).model_fields
        if isinstance(place.value, Branch):
            unknown = [name for name in place.value.entries if name not in fields]
            if any(nearest(name, fields) == key for name in unknown):
                return
        under = f" in `{place.path}`" if place.path else ""
        yield self._page.problem(
            "error",
            "missing-key",
            f"`{key}` is missing{under}",
            _heading(place),
            hint=how_to_add(key, fields[key].description or ""),
            key=join(place.path, key),
        )

    def _not_one_of(self, location: Location) -> Problem:
        place = locate(self._tree, location)
        owner, field = self._owner(location[:-1]), str(location[-1])
        allowed = [str(value) for value in literals(owner.model_fields[field].annotation)]
        if place.path == _SOURCE:
            allowed = list(SOURCES)
        value = place.value
        if not isinstance(value, Leaf) or value.value is None:
            return self._wrong_type(location, f"one of {quoted(allowed)}")
        if field == "version":
            message = f"version `{written(place)}` of this format is not known"
            hint = "this lakeload reads `version: 1`"
            if value.text == "1":
                message, hint = "`version` must be a number, not text", "write it without quotes"
            return self._at_value(place, "version", message, hint)
        given = str(value.value)
        if isinstance(value.value, str) and value.value in allowed and value.value.isdecimal():
            message = f"`{field}` must be a number, not text"
            return self._at_value(place, "wrong-type", message, "write it without quotes")
        exact = next((name for name in allowed if name.lower() == given.lower()), None)
        later = None if exact else later_value(owner.__name__, field, given.upper())
        if later is not None:
            return self._at_value(place, later.code, later.message, later.hint)
        named = f"write `{exact}`" if exact else value_hint(owner.__name__, field, given)
        if place.path == _SOURCE and given.upper() in get_args(FileFormatName):
            named = f"write `type: FILES` and `format: {given.upper()}`"
        advice = named or did_you_mean(given, allowed) or listed(allowed)
        message = f"`{field}` cannot be `{written(place)}`"
        return self._at_value(place, "unknown-value", message, advice)

    def _wrong_type(self, location: Location, expected: str) -> Problem:
        place = locate(self._tree, location)
        name = printable(place.path.rpartition(".")[2]) or "the document"
        value = place.value
        message = f"`{name}` must be {expected}, not {what_it_is(place, expected)}"
        if isinstance(value, Leaf) and value.value is None:
            message = f"`{name}` has no value"
        hint = self._their_value(location, value) or type_hint(place, expected)
        return self._at_value(place, "wrong-type", message, hint)

    def _their_value(self, location: Location, value: Tree) -> str | None:
        """Say what to write for another product's value of a setting that is not a choice."""
        owner = model_at(self._model, location[:-1])
        if owner is None or not isinstance(value, Leaf):
            return None
        return value_hint(owner.__name__, str(location[-1]), value.text)

    def _too_short(self, location: Location) -> Iterator[Problem]:
        """pydantic also calls a list too short whose items are invalid."""
        place = locate(self._tree, location)
        if isinstance(place.value, Items) and not place.value.items:
            yield self._at_value(place, "empty", f"`{place.path}` is empty", "list at least one")

    def _out_of_range(self, location: Location) -> Problem:
        place = locate(self._tree, location)
        message = f"`{place.path.rpartition('.')[2]}` cannot be `{written(place)}`"
        hint = allowed_range(self._owner(location[:-1]), str(location[-1]))
        return self._at_value(place, "out-of-range", message, hint)

    def _owner(self, location: Location) -> type[BaseModel]:
        owner = model_at(self._model, location)
        assert owner is not None, "an error of a field is in a model"  # noqa: S101
        return owner

    def _at_value(self, place: KeyLocation, code: str, message: str, hint: str | None) -> Problem:
        return self._problem(place.span, place, code, message, hint)

    def _problem(
        self, span: Span, place: KeyLocation, code: str, message: str, hint: str | None
    ) -> Problem:
        return self._page.problem("error", code, message, span, hint=hint, key=place.path)


def _heading(place: KeyLocation) -> Span:
    """Return where to point when something is missing: the mapping's key or its first key."""
    if place.key is not None:
        return place.key
    if isinstance(place.value, Branch) and place.value.entries:
        return next(iter(place.value.entries.values())).key
    return place.span


def _without_consequences(problems: list[Problem]) -> list[Problem]:
    """Leave out what only follows from a kind of source that is not built."""
    codes = {problem.key: problem.code for problem in problems}
    if codes.get(_SOURCE) != "not-supported-yet":
        return problems
    return [
        problem
        for problem in problems
        if problem.key == _SOURCE
        or not (
            problem.key.startswith("source.")
            or (problem.code in ("missing-key", "not-supported-yet") and "tables[" in problem.key)
        )
    ]
