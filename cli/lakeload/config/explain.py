"""pydantic's errors → problems in YAML's words, at their lines."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from lakeload.config.document import Ambiguous, Branch, Items, Leaf, Tree
from lakeload.config.later import later_key, later_value
from lakeload.config.locate import Location, Place, join, locate
from lakeload.config.model import FINDINGS, Finding
from lakeload.config.page import Page
from lakeload.config.problems import Problem
from lakeload.config.secret_names import is_masked_key, shown
from lakeload_jobs.rules.suggest import did_you_mean, nearest

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


class Explainer:
    """Explains the errors of one document."""

    def __init__(self, page: Page, tree: Tree, model: type[BaseModel]) -> None:
        self._page = page
        self._tree = tree
        self._model = model

    def problems(self, error: ValidationError) -> list[Problem]:
        """Return one problem for each cause."""
        details = error.errors(include_url=False, include_input=False)
        found = [problem for detail in details for problem in self._explained(detail)]
        return _without_consequences(found)

    def finding(self, finding: Finding, location: Location = ()) -> Problem:
        """Place a finding: at the setting its `at` leads to, or the key that is meant."""
        full = (*location, *finding.at)
        place = locate(self._tree, full)
        span = place.key_span if finding.at and place.key is not None else place.span
        return self._page.problem(
            "error", finding.code, finding.message, span, hint=finding.hint, key=place.path
        )

    def _explained(self, detail: Any) -> Iterator[Problem]:
        kind, location = detail["type"], tuple(detail["loc"])
        context = detail.get("ctx", {})
        if kind == "findings":
            for finding in context[FINDINGS]:
                yield self.finding(finding, location)
        elif kind == "extra_forbidden":
            yield self._unknown_key(location)
        elif kind == "missing":
            yield self._missing(location)
        elif kind == "literal_error":
            yield self._not_one_of(location)
        elif kind in _TYPES:
            yield self._wrong_type(location, _TYPES[kind])
        else:
            yield self._out_of_range(location, detail["msg"], context)

    def _unknown_key(self, location: Location) -> Problem:
        key, parent = str(location[-1]), location[:-1]
        place = locate(self._tree, location)
        owner = model_at(self._model, parent)
        later = later_key(owner.__name__, key) if owner else None
        if later is not None:
            return self._at_key(place, later.code, later.message, later.hint)
        known = list(owner.model_fields) if owner else []
        hint = did_you_mean(key, known) or self._belongs(key) or _listed(known)
        return self._at_key(place, "unknown-key", f"unknown key `{shown(key)}`", hint)

    def _belongs(self, key: str) -> str | None:
        """Say where a key that exists elsewhere in the document is meant to stand."""
        homes = [path for path, model in sections(self._model) if key in model.model_fields]
        if not homes:
            return None
        return f"it belongs under `{homes[0]}`" if homes[0] else "it belongs at the top level"

    def _missing(self, location: Location) -> Problem:
        key = str(location[-1])
        place = locate(self._tree, location[:-1])
        owner = model_at(self._model, location[:-1])
        field = owner.model_fields.get(key) if owner else None
        about = (field.description or "") if field else ""
        under = f" in `{place.path}`" if place.path else ""
        near = None
        if isinstance(place.value, Branch) and owner:
            given = [name for name in place.value.entries if name not in owner.model_fields]
            near = nearest(key, given)
        hint = f"is `{shown(near)}` meant?" if near else _sentence(key, about)
        return self._page.problem(
            "error",
            "missing-key",
            f"`{key}` is missing{under}",
            _heading(place),
            hint=hint,
            key=join(place.path, key),
        )

    def _not_one_of(self, location: Location) -> Problem:
        place = locate(self._tree, location)
        owner = model_at(self._model, location[:-1])
        field = str(location[-1])
        annotation = owner.model_fields[field].annotation if owner else None
        allowed = [str(value) for value in _literals(annotation)]
        value = place.value
        if not isinstance(value, Leaf) or value.value is None:
            return self._wrong_type(location, f"one of {_quoted(allowed)}")
        if field == "version":
            message = f"version `{shown(value.text)}` of this format is not known"
            return self._at_value(place, "version", message, "this lakeload reads `version: 1`")
        written = str(value.value)
        exact = next((name for name in allowed if name.lower() == written.lower()), None)
        later = later_value(owner.__name__, field, written.upper()) if owner and not exact else None
        if later is not None:
            return self._at_value(place, later.code, later.message, later.hint)
        hint = f"write `{exact}`" if exact else did_you_mean(written, allowed) or _listed(allowed)
        message = f"`{field}` cannot be `{self._shown(place)}`"
        return self._at_value(place, "unknown-value", message, hint)

    def _wrong_type(self, location: Location, expected: str) -> Problem:
        place = locate(self._tree, location)
        name = place.path.rpartition(".")[2] or "the document"
        value = place.value
        message = f"`{name}` must be {expected}, not {_what(value, self._shown(place))}"
        hint: str | None = None
        if isinstance(value, Leaf) and value.value is None and not value.text:
            message = f"`{name}` has no value"
            hint = "write a value or remove the line"
            if expected == "text":
                hint = 'write a value, `""` for empty text, or remove the line'
        elif expected == "text" and isinstance(value, Leaf):
            hint = f'put it in quotes: `"{self._shown(place)}"`'
        elif expected == "a list" and isinstance(value, Leaf):
            hint = f"write `[{self._shown(place)}]`"
        elif expected == "a list":
            hint = "begin each item with `- `"
        elif expected == "a mapping":
            hint = "write `key: value` lines below it"
        return self._at_value(place, "wrong-type", message, hint)

    def _out_of_range(self, location: Location, message: str, context: dict[str, Any]) -> Problem:
        place = locate(self._tree, location)
        name = place.path.rpartition(".")[2]
        if context and set(context) <= {"ge", "le"}:
            owner = model_at(self._model, location[:-1])
            hint = _range(owner, str(location[-1])) if owner else None
            text = f"`{name}` cannot be `{self._shown(place)}`"
            return self._at_value(place, "out-of-range", text, hint)
        if "min_length" in context:
            return self._at_value(place, "empty", f"`{name}` is empty", "list at least one")
        return self._at_value(place, "invalid", f"`{name}`: {message}", None)

    def _shown(self, place: Place) -> str:
        """Return a scalar as it is written; what the environment filled in stays hidden."""
        if not isinstance(place.value, Leaf):
            return "…"
        parts = place.path.split(".")
        parent = parts[-2] if len(parts) > 1 else None
        return "****" if is_masked_key(parts[-1], parent) else shown(place.value.text)

    def _at_key(self, place: Place, code: str, message: str, hint: str | None) -> Problem:
        return self._page.problem("error", code, message, place.key_span, hint=hint, key=place.path)

    def _at_value(self, place: Place, code: str, message: str, hint: str | None) -> Problem:
        return self._page.problem("error", code, message, place.span, hint=hint, key=place.path)


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
        for argument in get_args(annotation):
            if found := _model_in(argument):
                return found
    return None


def _literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    return [value for argument in get_args(annotation) for value in _literals(argument)]


def _range(owner: type[BaseModel], field: str) -> str:
    limits = owner.model_fields[field].metadata
    low = next(item.ge for item in limits if hasattr(item, "ge"))
    high = next(item.le for item in limits if hasattr(item, "le"))
    return f"it can be {low} to {high}"


def _what(tree: Tree, written: str) -> str:
    if isinstance(tree, Items):
        return "a list"
    if isinstance(tree, Branch):
        return "a mapping"
    value = tree.value
    if isinstance(value, Ambiguous):
        return f"`{written}`, which YAML can read as {value.reading}"
    if isinstance(value, bool):
        return f"the boolean `{written}`"
    if isinstance(value, int | float):
        return f"the number `{written}`"
    return f"`{written}`"


def _heading(place: Place) -> Any:
    """Where to point when something is missing from a mapping: its key or its first key."""
    if place.key is not None:
        return place.key
    if isinstance(place.value, Branch) and place.value.entries:
        return next(iter(place.value.entries.values())).key
    return place.span


def _sentence(key: str, about: str) -> str | None:
    first = about.split("\n", 1)[0].rstrip(".")
    return f"add `{key}: …`" + (f": {first[0].lower()}{first[1:]}" if first else "")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _listed(names: Sequence[str]) -> str | None:
    return f"there are {_quoted(names)}" if len(names) > 1 else None


def _without_consequences(problems: list[Problem]) -> list[Problem]:
    """Leave out what only follows from a kind of source that is not built."""
    codes = {problem.key: problem.code for problem in problems}
    if codes.get("source.type") != "not-supported-yet":
        return problems
    return [
        problem
        for problem in problems
        if problem.key == "source.type"
        or not (
            problem.key.startswith("source.")
            or (problem.code in ("missing-key", "not-supported-yet") and "tables[" in problem.key)
        )
    ]
