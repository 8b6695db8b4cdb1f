"""Nodes → plain data for the models, with a tree beside it that knows where each value stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeload.config.interpolation import fill
from lakeload.config.page import Page
from lakeload.config.problems import MAX_PROBLEMS, Problem
from lakeload.config.secret_names import (
    REFERENCE_KINDS,
    SECRET_SETTINGS,
    SHORTHAND,
    VARIABLE_NAME,
    is_masked_key,
    shown,
)
from lakeload.config.yaml_tree import (
    MAX_VALUES,
    ListNode,
    MappingNode,
    Node,
    ScalarNode,
    Span,
    YamlRefused,
)

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?")
# What some YAML readers take for something other than text: yes, on, 0123, 0x1F, 1_000, 1:30,
# 1e3, .5, .inf, dates. Readers disagree, so lakeload takes none of them without quotes.
_AMBIGUOUS = (
    (re.compile(r"(?i:yes|no|on|off)"), "true or false"),
    (re.compile(r"NULL|Null"), "no value"),
    (re.compile(r"[-+]?(0[0-9_]+|0[xob][0-9A-Fa-f_]+|[0-9][0-9_]*_[0-9_]*|\+[0-9]+)"), "a number"),
    (re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?"), "a number"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.?[0-9]*)([eE][-+]?[0-9]+)?"), "a number"),
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
    _values: int = 0

    def read(self, node: Node, *, key: str = "", parent: str | None = None) -> Tree:
        """Read one node that stands under `key`. Raises `YamlRefused` for alias expansion."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlRefused(
                "too-large", f"aliases expand to more than {MAX_VALUES:,} values", node.span
            )
        if isinstance(node, ScalarNode):
            return self._leaf(node, key, parent)
        if isinstance(node, ListNode):
            items = tuple(self.read(item, key=key, parent=parent) for item in node.items)
            return Items(items, node.span)
        return Branch(self._entries(node, key, parent), node.span)

    def _entries(
        self, node: MappingNode, parent: str, grandparent: str | None
    ) -> dict[str, DocumentEntry]:
        own: dict[str, DocumentEntry] = {}
        inherited: dict[str, DocumentEntry] = {}
        # Inside a masked mapping that is not a reference, every value stays masked.
        hidden = is_masked_key(parent, grandparent)
        for key_node, value_node in node.pairs:
            if not isinstance(key_node, ScalarNode):
                self._problem("key", "a key must be text", key_node.span)
                continue
            name = key_node.text
            if key_node.plain and name == "<<":
                for merged in self._merged(value_node, parent, grandparent):
                    inherited = {**merged, **inherited}
                continue
            above: str | None
            below, above = name, parent
            if hidden and name not in REFERENCE_KINDS:
                below, above = parent, grandparent
            try:
                value = self.read(value_node, key=below, parent=above)
            except YamlRefused as refused:
                # Of nested keys the outermost is the one whose value is too large.
                raise YamlRefused(refused.code, refused.message, key_node.span) from refused
            if name in own:
                self._duplicate(name, own[name].key, key_node.span)
            else:
                own[name] = DocumentEntry(key_node.span, value)
        return {**inherited, **own}

    def _merged(self, node: Node, key: str, parent: str | None) -> list[dict[str, DocumentEntry]]:
        nodes = node.items if isinstance(node, ListNode) else [node]
        found = []
        for item in nodes:
            if isinstance(item, MappingNode):
                tree = self.read(item, key=key, parent=parent)
                assert isinstance(tree, Branch)  # noqa: S101
                found.append(tree.entries)
            else:
                self._problem("merge", "`<<` takes a mapping, or a list of mappings", item.span)
        return found

    def _leaf(self, node: ScalarNode, key: str, parent: str | None) -> Leaf:
        if is_masked_key(key, parent) and not SHORTHAND.fullmatch(node.text):
            self.page.hidden.append(node.span)
        if key in REFERENCE_KINDS and parent is not None and is_masked_key(parent, None):
            self._hide_odd_reference(node, key)
        if key in SECRET_SETTINGS:
            return Leaf(node.text, node.text, node.plain, node.span)
        text, unfilled = fill(node.text, self.environment)
        for problem in unfilled:
            self._problem(
                "environment", problem.message, _within(node, problem.offset, problem.length),
                problem.hint,
            )  # fmt: skip
        filled = text != node.text
        if unfilled:
            value: Any = UnfilledValue()
        elif not node.plain or (filled and text == ""):
            value = text
        else:
            value = resolved(text)
        return Leaf(value, node.text, node.plain, node.span, filled)

    def _hide_odd_reference(self, node: ScalarNode, kind: str) -> None:
        """A value pasted where a variable's name belongs is a secret too."""
        if kind == "env" and not VARIABLE_NAME.fullmatch(node.text):
            self.page.hidden.append(node.span)

    def _duplicate(self, name: str, first: Span, again: Span) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            return
        self.problems.append(
            self.page.problem(
                "error",
                "duplicate-key",
                f"`{shown(name)}` is given twice, on lines {first.line + 1} and {again.line + 1}",
                again,
                hint="keep one of them",
                label="again here",
                before=((first, "first here"),),
            )
        )

    def _problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            return
        self.problems.append(self.page.problem("error", code, message, span, hint=hint))


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


def _within(node: ScalarNode, offset: int, length: int) -> Span:
    """Return the place of a part of a scalar; the whole of it when it may hold escapes."""
    span = node.span
    if span.line != span.end_line or span.end_column - span.column - len(node.text) not in (0, 2):
        return span
    column = span.column + offset + (0 if node.plain else 1)
    return Span(span.line, column, span.line, column + length)
