"""Documents as plain data for the models, and as trees that know where each value stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from lakeload.config.page import Page
from lakeload.config.problems import MAX_PROBLEMS, Problem
from lakeload.config.secret_names import (
    MASK,
    REFERENCE_KINDS,
    SECRET_SETTINGS,
    SHORTHAND,
    VARIABLE_NAME,
    is_masked_key,
    shown,
)
from lakeload.config.yaml_tree import Span, is_plain, span_of

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?")
# What some YAML readers take for something other than text: yes, on, 0123, 0x1F, 1_000, 1:30,
# 1e3, .5, .inf, dates. Readers disagree, so lakeload takes none of them without quotes.
_AMBIGUOUS = (
    (re.compile(r"(?i:yes|no|on|off)"), "true or false"),
    (re.compile(r"NULL|Null"), "no value"),
    (re.compile(r"[-+]?(0[0-9_]+|0[xob][0-9A-Fa-f_]+|[0-9][0-9_]*_[0-9_]*|\+[0-9]+)"), "a number"),
    (re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?"), "a number"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), "a number"),
    (re.compile(r"[-+]?\.(?i:inf|nan)"), "a number"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"), "a date"),
)


@dataclass(frozen=True)
class Ambiguous:
    """An unquoted value that YAML readers do not take for text; no model accepts it."""

    text: str
    reading: str


@dataclass(frozen=True)
class UnfilledValue:
    """Text with a reference to the environment that could not be filled; reported already."""


@dataclass(frozen=True)
class Leaf:
    """A scalar. `text` is as written; `filled` when the environment took part in `value`."""

    value: Any
    text: str
    plain: bool
    span: Span
    filled: bool = False


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    span: Span


@dataclass(frozen=True)
class DocumentEntry:
    """A key, where it stands, and its value."""

    key: Span
    value: Tree


@dataclass(frozen=True)
class Branch:
    """A mapping without duplicates, its merge keys resolved."""

    entries: dict[str, DocumentEntry]
    span: Span


Tree = Leaf | Items | Branch


def plain_data(tree: Tree) -> Any:
    """Return strings, numbers, booleans, None, `Ambiguous`, tuples and dicts."""
    if isinstance(tree, Leaf):
        return tree.value
    if isinstance(tree, Items):
        return tuple(plain_data(item) for item in tree.items)
    return {name: plain_data(entry.value) for name, entry in tree.entries.items()}


@dataclass
class TreeReader:
    """Turns the nodes of one page into a tree; collects problems and hides secrets."""

    page: Page
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def read(self, node: yaml.Node, *, key: str = "", parent: str | None = None) -> Tree:
        """Read one node that stands under `key`."""
        if isinstance(node, yaml.ScalarNode):
            return self._leaf(node, key, parent)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.read(item, key=key, parent=parent) for item in node.value)
            return Items(items, span_of(node))
        assert isinstance(node, yaml.MappingNode)  # noqa: S101
        return Branch(self._entries(node, key, parent), span_of(node))

    def _entries(
        self, node: yaml.MappingNode, parent: str, grandparent: str | None
    ) -> dict[str, DocumentEntry]:
        own: dict[str, DocumentEntry] = {}
        inherited: dict[str, DocumentEntry] = {}
        # Inside a masked mapping that is not a reference, every value stays masked.
        hidden = is_masked_key(parent, grandparent)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem("key", "a key must be text", span_of(key_node))
                continue
            name = key_node.value
            if is_plain(key_node) and name == "<<":
                for merged in self._merged(value_node, parent, grandparent):
                    inherited = {**merged, **inherited}
                continue
            above: str | None
            below, above = name, parent
            if hidden and name not in REFERENCE_KINDS:
                below, above = parent, grandparent
            value = self.read(value_node, key=below, parent=above)
            if name in own:
                self._duplicate(name, own[name].key, span_of(key_node))
            else:
                own[name] = DocumentEntry(span_of(key_node), value)
        return {**inherited, **own}

    def _merged(
        self, node: yaml.Node, key: str, parent: str | None
    ) -> list[dict[str, DocumentEntry]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found = []
        for item in nodes:
            if isinstance(item, yaml.MappingNode):
                tree = self.read(item, key=key, parent=parent)
                assert isinstance(tree, Branch)  # noqa: S101
                found.append(tree.entries)
            else:
                self._problem("merge", "`<<` takes a mapping, or a list of mappings", span_of(item))
        return found

    def _leaf(self, node: yaml.ScalarNode, key: str, parent: str | None) -> Leaf:
        if is_masked_key(key, parent) and not SHORTHAND.fullmatch(node.value):
            self.page.hidden.append(span_of(node))
        # A value pasted where a variable's name belongs is a secret too. Of the settings called
        # `url`, only that of a webhook is a reference.
        if key == "env" and parent and (parent == "url" or is_masked_key(parent, None)):
            hidden = () if VARIABLE_NAME.fullmatch(node.value) else (span_of(node),)
            self.page.hidden += hidden
        if key in SECRET_SETTINGS or (parent, key) == ("notify", "url"):
            return Leaf(node.value, node.value, is_plain(node), span_of(node))
        text, unfilled = fill(node.value, self.environment)
        for problem in unfilled:
            self._problem(
                "environment", problem.message, _within(node, problem.offset, problem.length),
                problem.hint,
            )  # fmt: skip
        filled = text != node.value
        if unfilled:
            value: Any = UnfilledValue()
        elif not is_plain(node) or (filled and text == ""):
            value = text
        else:
            value = resolved(text)
        return Leaf(value, node.value, is_plain(node), span_of(node), filled)

    def _duplicate(self, name: str, first: Span, again: Span) -> None:
        self._problem(
            "duplicate-key",
            f"`{shown(name)}` is given twice, on lines {first.line + 1} and {again.line + 1}",
            again,
            "remove one of them",
            label="again here",
            before=((first, "first here"),),
        )

    def _problem(
        self, code: str, message: str, span: Span, hint: str | None = None, **more: Any
    ) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.page.problem("error", code, message, span, hint=hint, **more))


def resolved(text: str) -> Any:
    """Return the value of unquoted text: true, false, null, numbers in decimal, or text."""
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if text in ("", "~", "null"):
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    for pattern, reading in _AMBIGUOUS:
        if pattern.fullmatch(text):
            return Ambiguous(text, reading)
    return text


def _within(node: yaml.ScalarNode, offset: int, length: int) -> Span:
    """Return the place of a part of a scalar; the whole of it when it may hold escapes."""
    span = span_of(node)
    if span.line != span.end_line or span.end_column - span.column - len(node.value) not in (0, 2):
        return span
    column = span.column + offset + (0 if is_plain(node) else 1)
    return Span(span.line, column, span.line, column + length)


_REFERENCE = re.compile(
    rf"\$\$\{{|\$\{{(?P<name>{VARIABLE_NAME.pattern})(?::-(?P<default>(?:[^}}$]|\$(?!\{{))*))?\}}|\$\{{"
)
_MAX_UNFILLED = 5
"""As many references of one text are reported."""


@dataclass(frozen=True)
class Unfilled:
    """A reference that could not be filled; `offset` is its place in the text."""

    message: str
    hint: str
    offset: int
    length: int


def fill(text: str, environment: Mapping[str, str]) -> tuple[str, tuple[Unfilled, ...]]:
    """Return the text with references replaced, and those that could not be.

    `$${` stands for a literal `${`. As in a shell, the default also replaces an empty value.
    """
    unfilled: list[Unfilled] = []

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name: str | None = match["name"]
        default: str | None = match["default"]
        if len(unfilled) == _MAX_UNFILLED:
            return match[0]
        if name is None:
            message = "`${` begins a reference to an environment variable, but this is not one"
            hint = "write `${NAME}` or `${NAME:-default}`; a literal `${` is written `$${`"
        else:
            value = environment.get(name)
            if value is not None or default is not None:
                return value or default or ""
            message = f"the environment variable `{name}` is not set"
            hint = f"export {name}=… before running lakeload, or give a default: `${{{name}:-…}}`"
        unfilled.append(Unfilled(message, hint, match.start(), len(match[0])))
        return match[0]

    filled = _REFERENCE.sub(replacement, text) if "${" in text else text
    return filled, tuple(unfilled)


Location = tuple[str | int, ...]


@dataclass(frozen=True)
class KeyLocation:
    """Where a setting stands. `key` is None for list items and the document itself."""

    path: str
    key: Span | None
    value: Tree

    @property
    def span(self) -> Span:
        """The value, or its key where the value is absent or spreads over lines."""
        value = self.value.span
        spread = not isinstance(self.value, Leaf) and value.line != value.end_line
        if self.key is not None and (value.empty or spread):
            return self.key
        return value

    @property
    def key_span(self) -> Span:
        """The key, or the value where there is none."""
        return self.key if self.key is not None else self.span


def locate(root: Tree, location: Sequence[str | int]) -> KeyLocation:
    """Walk down `location` as far as the tree goes.

    A part that is not a key of the mapping at hand names a member of a union: stay.
    """
    place = KeyLocation("", None, root)
    for part in location:
        tree = place.value
        if isinstance(tree, Branch) and part in tree.entries:
            entry = tree.entries[str(part)]
            place = KeyLocation(join(place.path, str(part)), entry.key, entry.value)
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            place = KeyLocation(f"{place.path}[{part}]", None, tree.items[part])
    return place


def join(path: str, key: str) -> str:
    """Return the dotted path of a key below `path`."""
    return f"{path}.{key}" if path else key


def written(place: KeyLocation) -> str:
    """Return a scalar as it is written; neither secrets nor what the environment filled in."""
    if not isinstance(place.value, Leaf):
        return "…"
    parts = place.path.split(".")
    parent = parts[-2] if len(parts) > 1 else None
    return MASK if is_masked_key(parts[-1], parent) else shown(place.value.text)


def as_written(text: str, place: KeyLocation) -> str:
    """Put `${NAME}` back where a message shows what the environment filled in."""
    value = place.value
    if not isinstance(value, Leaf) or not value.filled or not isinstance(value.value, str):
        return text
    return text.replace(f"`{shown(value.value)}`", f"`{shown(value.text)}`")


def what_it_is(place: KeyLocation, expected: str) -> str:
    """Name a value that is not `expected`: `a list`, ``the number `5` ``."""
    tree: Tree = place.value
    if isinstance(tree, Items):
        return "a list"
    if isinstance(tree, Branch):
        return "a mapping"
    value, text = tree.value, written(place)
    if isinstance(value, Ambiguous) and value.reading != expected:
        return f"`{text}`, which YAML can read as {value.reading}"
    if isinstance(value, bool):
        return f"the boolean `{text}`"
    if isinstance(value, int | float):
        return f"the number `{text}`"
    return f"`{text}`"


def type_hint(place: KeyLocation, expected: str) -> str | None:
    """Say how to write a value that is `expected`, given what is there."""
    value, text = place.value, written(place)
    if isinstance(value, Leaf) and value.value is None:
        empty = ', `""` for empty text,' if expected == "text" else ""
        return f"write a value{empty or ''} or remove the line"
    scalar = isinstance(value, Leaf)
    if expected == "text":
        return f'put it in quotes: `"{text}"`' if scalar else None
    if (
        expected == "true or false"
        and isinstance(value, Leaf)
        and isinstance(value.value, Ambiguous)
    ):
        return f"write `{'true' if text.lower() in ('yes', 'y', 'on') else 'false'}`"
    if expected == "a list":
        return f"write `[{text}]`" if scalar else "begin each item with `- `"
    if expected == "a mapping":
        return "write `key: value` lines below it"
    return None


def quoted(names: Sequence[str], most: int | None = None) -> str:
    """Return `a`, `b`, `c`; of more than `most` only how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if most and len(names) > most else shown


def listed(names: Sequence[str]) -> str | None:
    """Return a hint that lists all names there are."""
    return f"there are {quoted(names)}" if len(names) > 1 else None


def how_to_add(key: str, about: str) -> str:
    """Return a hint to add `key`, with the first line of its description."""
    first = about.split("\n", 1)[0].rstrip(".")
    return f"add `{key}: …`" + (f": {first[0].lower()}{first[1:]}" if first else "")
