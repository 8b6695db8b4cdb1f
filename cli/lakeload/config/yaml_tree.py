"""YAML trees that remember lines, and the checks of their syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class Span:
    """A stretch of text: lines and columns count from 0, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def empty(self) -> bool:
        """Whether it holds no character."""
        return (self.line, self.column) == (self.end_line, self.end_column)


class YamlRefused(Exception):
    """The text is not YAML that lakeload reads; `span` says where."""

    def __init__(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span
        self.hint = hint


def syntax_refusal(error: yaml.MarkedYAMLError, text: str) -> YamlRefused:
    """Return the refusal for a syntax error of `text`."""
    mark = error.problem_mark or error.context_mark
    assert mark is not None, "PyYAML marks every syntax error"  # noqa: S101
    span = Span(mark.line, mark.column, mark.line, mark.column + 1)
    problem = error.problem or error.context or "invalid YAML"
    if "while parsing a flow" in (error.context or "") and (unquoted := _unquoted(text, mark.line)):
        return unquoted
    for pattern, message, hint in _SYNTAX:
        if found := re.search(pattern, problem):
            if error.context_mark and "{opened}" in message:
                opened = error.context_mark
                span = Span(opened.line, opened.column, opened.line, opened.column + 1)
            return YamlRefused("syntax", message.format(*found.groups(), opened=""), span, hint)
    return YamlRefused("syntax", f"this is not valid YAML: {problem}", span)


def _unquoted(text: str, line: int) -> YamlRefused | None:
    """Tell that `{` of `${NAME}` begins a mapping when it stands inside `{…}` or `[…]`."""
    lines = text.splitlines()
    found = _BARE_REFERENCE.search(lines[line]) if line < len(lines) else None
    if found is None:
        return None
    span = Span(line, found.start(1), line, found.end(1))
    message = "`${NAME}` needs quotes inside `{…}` and `[…]`"
    return YamlRefused("syntax", message, span, 'write `"${NAME}"`')


_BARE_REFERENCE = re.compile(r"[:,\[{][ ]?(\$\{[^}]*\}?)")

_SYNTAX = (
    (
        "mapping values are not allowed",
        "a `:` is not expected here",
        "write text that holds `: ` in quotes, and give keys of one mapping the same indentation",
    ),
    (r"found character '\\t'", "a tab is not allowed as indentation", "indent with spaces"),
    (
        r"found character '(.)' that cannot",
        "text cannot begin with `{0}`",
        "write it in quotes",
    ),
    (
        r"expected ',' or '\]'",
        "this `[` is never closed, or a comma is missing after it{opened}",
        "write a list as `[a, b]`",
    ),
    (
        r"expected ',' or '}'",
        "this `{{` is never closed, or a comma is missing after it{opened}",
        "write a mapping as `{key: value, other: value}`",
    ),
    (
        "found unexpected end of stream",
        "this quote is never closed{opened}",
        "end the text with the same quotation mark",
    ),
    (
        "could not find expected ':'",
        "a key without `:`",
        "write `key: value`, with a space after the colon",
    ),
    (
        "expected <block end>",
        "this line does not fit the lines above it",
        "give all keys of one mapping, or all `-` of one list, the same indentation",
    ),
    (
        "expected alphabetic or numeric character",
        "text cannot begin with `*` or `&`, which stand for YAML aliases and anchors{opened}",
        "write it in quotes",
    ),
    (
        "found unknown escape character '(.)'",
        r"`\{0}` is not an escape in double quotes",
        r"write `\\` for a backslash, or use single quotes",
    ),
    ("found duplicate anchor", "an anchor is defined twice", None),
)


def character_refusal(text: str, error: yaml.reader.ReaderError) -> YamlRefused:
    """Return the refusal for a character that YAML does not allow."""
    before = text[: error.position]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    code = error.character if isinstance(error.character, int) else ord(str(error.character))
    return YamlRefused(
        "character",
        f"the character U+{code:04X} is not allowed in YAML",
        Span(line, column, line, column + 1),
        "remove it; in double quotes it can be written as an escape",
    )


MAX_BYTES = 1 << 20
"""A document has at most 1 MiB; some thousand tables fit."""

MAX_VALUES = 100_000
"""Keys and values of a document, those repeated through aliases included."""

MAX_DEPTH = 30
"""Levels of nesting; the deepest setting has 6."""


@dataclass(frozen=True)
class ScalarNode:
    """Text of the file; `plain` when it is not quoted, and so may be a number or a boolean."""

    text: str
    plain: bool
    span: Span


@dataclass(frozen=True)
class ListNode:
    """A list in block or flow style."""

    items: list[Node]
    span: Span


@dataclass(frozen=True)
class MappingNode:
    """Keys and values in the order of the file, duplicates and merge keys included."""

    pairs: list[tuple[Node, Node]]
    span: Span


Node = ScalarNode | ListNode | MappingNode


def read_nodes(text: str) -> Node | None:
    """Return the document's root, None when it is empty. Raises `YamlRefused`."""
    try:
        return _Composer(text).document()
    except yaml.MarkedYAMLError as error:
        raise syntax_refusal(error, text) from error
    except yaml.reader.ReaderError as error:
        raise character_refusal(text, error) from error


class _Composer:
    """Builds nodes from parser events; unlike PyYAML's composer it knows limits."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        self._anchors: dict[str, Node | None] = {}
        self._values = 0

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlRefused(
                        "several-documents",
                        "a second document begins here",
                        _span(event),
                        "write one document in each file; remove the line `---`",
                    )
                root = self._node(next(self._events), 0)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        self._count(event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        _check_tag(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = ScalarNode(event.value, _is_plain(event), _span(event))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._list(event, depth)
        else:
            node = self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _list(self, start: Any, depth: int) -> ListNode:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return ListNode(items, _span(start, event))

    def _mapping(self, start: Any, depth: int) -> MappingNode:
        pairs: list[tuple[Node, Node]] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            pairs.append((key, self._node(next(self._events), depth + 1)))
        return MappingNode(pairs, _span(start, event))

    def _alias(self, event: Any) -> Node:
        name = event.anchor
        if name not in self._anchors:
            raise YamlRefused(
                "unknown-alias",
                f"`*{name}` refers to an anchor that is not defined above",
                _span(event),
                "write the text in quotes if it is not meant as an alias",
            )
        node = self._anchors[name]
        if node is None:
            raise YamlRefused("endless-alias", f"`*{name}` contains itself", _span(event))
        return node

    def _count(self, event: Any, depth: int) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlRefused(
                "too-large", f"the document has more than {MAX_VALUES:,} values", _span(event)
            )
        if depth > MAX_DEPTH:
            raise YamlRefused(
                "too-deep", f"values are nested more than {MAX_DEPTH} levels deep", _span(event)
            )


def _is_plain(event: Any) -> bool:
    return event.style is None and event.tag is None


def _check_tag(event: Any) -> None:
    if event.tag in (None, "!", "tag:yaml.org,2002:str"):
        return
    tag = event.tag.replace("tag:yaml.org,2002:", "!!")
    raise YamlRefused(
        "tag", f"the YAML tag `{tag}` is not allowed", _span(event), "write the value without it"
    )


def _span(start: Any, end: Any = None) -> Span:
    first, last = start.start_mark, (end or start).end_mark
    return Span(first.line, first.column, last.line, last.column)
