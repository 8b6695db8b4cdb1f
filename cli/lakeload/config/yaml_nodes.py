"""YAML text → a tree of nodes with positions, within limits that hold for hostile files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from lakeload.config.yaml_syntax import (
    Span,
    YamlRefused,
    character_refusal,
    syntax_refusal,
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
