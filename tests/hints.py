"""The hints of the product that name a setting, and the test that follows each.

`tests/cases/hints.tsv` is the list: a module, the hint as it stands there, with `…` for what is
filled in, and what follows it: a test file and the name of its case, `read: ` and a reason, or
`not yet` (tests/unit/documents/test_listed_hints.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from lakeload.config.yaml_tree import own_yaml
from lakeload.documents.destination import Destination
from lakeload.documents.explain import sections
from lakeload.documents.pipeline import pipeline_model
from lakeload.sources.registry import SOURCES
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from tests.reference import pipeline_sections

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "cases" / "hints.tsv"
FOLDERS = ("cli/lakeload", "sparkjobs/lakeload_jobs")

_TOKEN = re.compile(r"`\{?([A-Za-z_]+(?:\.[A-Za-z_]+)*)(?:: [^`]*|\}?)`")
_ORDER = re.compile(
    r"(?:^|[;:,.?…] ?|\b(?:or|and|to|either|then) )"
    r"(?:add|cast|check|choose|compare|correct|cut|drop|exclude|fix|give|keep|leave|load|lower|name"
    r"|raise|remove|replace|restore|set|shorten|turn|use|write|begin|refer)\b([^;]*)"
)


class Hint(NamedTuple):
    """A string of a module that tells to change a setting; `…` is what is filled in."""

    module: str
    text: str


@cache
def settings() -> frozenset[str]:
    """Return the names of all settings and reader options."""
    models = [model for _, model in (*sections(Destination), *pipeline_sections())]
    names = {name for model in models for name in model.model_fields}
    return frozenset(names.union(*(one.options for one in FILE_FORMATS.values())))


def names_setting(text: str) -> bool:
    """Tell whether a text tells to change a setting that it names."""
    return any(
        settings().issuperset(token[1].split("."))
        for order in _ORDER.finditer(text)
        for token in _TOKEN.finditer(order[1])
    )


class Text(NamedTuple):
    """A string of a module; `…` is what is filled in."""

    text: str
    alone: bool
    """Whether it is a statement of its own: documentation, and no message."""


def texts(source: str) -> Iterator[Text]:
    """Yield the strings of a module.

    The product has half a million nodes. So this visits each once, and no iterator makes tuples.
    """
    left: list[ast.AST] = [ast.parse(source)]
    for node in left:
        alone = isinstance(node, ast.Expr)
        for value in vars(node).values():
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.JoinedStr):
                    yield Text("".join(map(_part, child.values)), alone)
                    left += (part for part in child.values if not isinstance(part, ast.Constant))
                elif isinstance(child, ast.Constant):
                    if isinstance(child.value, str):
                        yield Text(child.value, alone)
                elif isinstance(child, ast.AST):
                    left.append(child)


def _part(part: ast.AST) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


@cache
def product_texts() -> tuple[tuple[str, Text], ...]:
    """Return the strings of the product that hold a backtick, each with its module.

    A setting stands between backticks wherever a message names it.
    """
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(
        (str(path.relative_to(ROOT)), text)
        for path in paths
        for text in texts(path.read_text("utf-8"))
        if "`" in text.text
    )


@cache
def hints() -> tuple[Hint, ...]:
    """Return the hints of the product that name a setting."""
    messages = ((module, text) for module, (text, alone) in product_texts() if not alone)
    return tuple(
        dict.fromkeys(Hint(module, text) for module, text in messages if names_setting(text))
    )


def template(text: str) -> re.Pattern[str]:
    """Return what a hint fits into which its values are filled."""
    return re.compile(".*?".join(re.escape(part) for part in text.split("…")), re.DOTALL)


def follows(file: str, case: str, *said: str) -> None:
    """Assert that hints are those which the list says that a case follows."""
    place = f"{Path(file).relative_to(ROOT)}: {case}"
    for hint in hints_of(place):
        assert any(template(hint.text).search(text) for text in said), (hint, said)


@cache
def listed() -> dict[Hint, str]:
    """Return what follows each hint, by the list."""
    lines = LIST.read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {Hint(module, ast.literal_eval(text)): by for module, text, by in rows}


def hints_of(by: str) -> list[Hint]:
    """Return the hints that a case follows."""
    return [hint for hint, named in listed().items() if named == by]


# How a hint is followed: on the document as data, by what is between its backticks.

_LINE = re.compile(r"\{?[A-Za-z_.]+: .*", re.DOTALL)
_REFERENCE = re.compile(r"\{(?:env|file|aws_secret|aws_parameter): .*\}")
_AT = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_PLACE = re.compile(
    r"(?:in|below|under|of the|for the|give the) `?(source|catalog|iceberg|destination|pipeline)\b"
)


def clauses(hint: str) -> list[str]:
    """Return what a hint tells to do, each of which is enough."""
    parts = re.split(
        r"; (?:or )?|,? or (?=`[a-z_]+: |(?:remove|leave|write|set|add|give|change|use)\b)", hint
    )
    return [
        part
        for part in parts
        if names_setting(part) or re.match(r"remove|leave|`\w+: [^`]+`$", part)
    ]


def follow(document: Mapping[str, Any], clause: str, at: str = "", **values: Any) -> dict[str, Any]:
    """Return a pipeline, or a destination, changed as a clause of a hint says.

    `at` is the setting that the hint is about; `values` are those that the clause leaves open, by
    their settings.
    """
    changed: dict[str, Any] = deepcopy(dict(document))
    path = [int(i) if i else key for i, key in _AT.findall(at)]
    tokens = re.findall(r"`([^`]+)`", clause)
    lines = [token for token in tokens if _LINE.fullmatch(token)]
    removes = re.match(r"(?:either )?(?:remove|leave|drop)\b", clause)
    if removes and not lines and values.keys().isdisjoint(tokens):
        _remove(changed, path, clause, tokens)
        return changed
    given: dict[str, Any] = {}
    for line in lines:
        for key, value in own_yaml(line.replace("…", str(values.get("…", "null")))).items():
            given[key] = values.get(key, value)
    given |= {token: values[token] for token in tokens if token in values}
    if lines and all(_REFERENCE.fullmatch(line) for line in lines):
        _get(changed, path[:-1])[path[-1]] = own_yaml(lines[0])
        return changed
    if re.match("write `[a-z_]+` under ", clause) or "in its place" in clause:
        del _get(changed, path[:-1])[path[-1]]
    assert given, f"nothing to set: {clause}"
    for key, value in given.items():
        _set(changed, path, clause, key.split("."), value)
    return changed


def _remove(document: Any, path: list[Any], clause: str, tokens: Sequence[str]) -> None:
    """Remove the setting that a clause names, or the one it is about."""
    home = list(_homes(document, path))
    names = [token for token in tokens if token.split(".")[0] in settings()]
    if names and not re.match(r"remove (?:it|the line)", clause):
        for name in names:
            keys = name.split(".")
            place = next(
                at for at in (*home, *document.get("tables", ())) if _below(at, keys[:-1], keys[-1])
            )
            del _get(place, keys[:-1])[keys[-1]]
        return
    parent = _get(document, path[:-1])
    del parent[path[-1]]


def _set(document: Any, path: list[Any], clause: str, keys: Sequence[str], value: Any) -> None:
    """Set what a clause names where it may stand: there, above, or where the clause says."""
    named = _PLACE.search(clause)
    places = [p for p in _places(document, path) if keys[0] in _fields(document, p)]
    if not any(keys[0] in names for names in _sections(_model(document)).values()):
        place = _get(document, path[:-1] if "options" in path else path[:2])
        options = place if "options" in path else place.setdefault("options", {})
        options[keys[0]] = value
        return
    if named:
        word = {"pipeline": ""}.get(named[1], named[1])
        places = [p for p in _places(document, path, everywhere=True)
                  if (p[-1] if p else "") == word and keys[0] in _fields(document, p)]  # fmt: skip
    elif not places:
        every = _places(document, path, everywhere=True)
        places = [p for p in every if keys[0] in _fields(document, p)]
    assert places, f"`{keys[0]}` has no place: {clause}"
    target = document
    for key in [*places[0], *keys[:-1]]:
        target = target[key] if isinstance(key, int) else target.setdefault(key, {})
    before = target.get(keys[-1])
    merges = isinstance(value, dict) and isinstance(before, dict)
    target[keys[-1]] = {**before, **value} if merges else value


def _homes(document: Any, path: list[Any]) -> Iterator[Any]:
    """Yield the mappings that a setting stands in, from the inside out."""
    for length in range(len(path), -1, -1):
        place = _get(document, path[:length])
        if isinstance(place, dict):
            yield place


def _below(place: Any, keys: Sequence[str], last: str) -> bool:
    try:
        return last in _get(place, keys)
    except (KeyError, TypeError):
        return False


def _get(place: Any, path: Sequence[Any]) -> Any:
    for key in path:
        place = place[key]
    return place


def _model(document: Any) -> type[BaseModel]:
    if not document.keys() & {"tables", "source"}:
        return Destination
    source = document.get("source", {})
    kind = source.get("type", "FILES") if isinstance(source, dict) else "FILES"
    return pipeline_model(SOURCES.get(kind, SOURCES["FILES"]))


def _fields(document: Any, path: Sequence[Any]) -> frozenset[str]:
    """Return the settings of a mapping."""
    return _sections(_model(document)).get(_name(path), frozenset())


def _name(path: Sequence[Any]) -> str:
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@cache
def _sections(model: type[BaseModel]) -> dict[str, frozenset[str]]:
    return {path: frozenset(of.model_fields) for path, of in sections(model)}


def _places(
    document: Any, path: Sequence[Any], *, everywhere: bool = False
) -> list[tuple[Any, ...]]:
    """Return the mappings above a setting, from the inside out; `everywhere`: all there may be."""
    above = [tuple(path[:length]) for length in range(len(path), -1, -1)]
    if everywhere:
        table = tuple(path[:2]) if path[:1] == ["tables"] else ("tables", 0)
        for name in _sections(_model(document)):
            parts = tuple(name.split(".")) if name else ()
            if parts[:1] == ("tables[]",):
                parts = (*table, *parts[1:])
            above.append(parts)
    return list(dict.fromkeys(above))
