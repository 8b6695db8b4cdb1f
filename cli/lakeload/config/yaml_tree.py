"""YAML trees that remember lines, and the checks of their syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

import yaml
from yaml.composer import Composer


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


def own_yaml(text: str) -> Any:
    """Return what YAML of lakeload's own says, as Python's values."""
    return yaml.load(text, Loader=_OwnLoader)  # noqa: S506


_OwnLoader: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@cache
def _known_errors() -> list[dict[str, Any]]:
    text = resources.files("lakeload.config").joinpath("syntax_errors.yml").read_text("utf-8")
    errors: list[dict[str, Any]] = own_yaml(text)
    return errors


def syntax_refusal(error: yaml.MarkedYAMLError, text: str) -> YamlRefused:
    """Return the refusal for a syntax error of `text`."""
    mark = error.problem_mark or error.context_mark
    assert mark is not None, "PyYAML marks every syntax error"  # noqa: S101
    span = Span(mark.line, mark.column, mark.line, mark.column + 1)
    problem = error.problem or error.context or "invalid YAML"
    if "while parsing a flow" in (error.context or "") and (unquoted := _unquoted(text, mark.line)):
        return unquoted
    for known in _known_errors():
        if found := re.search(known["pattern"], problem):
            if error.context_mark and known.get("opened"):
                opened = error.context_mark
                span = Span(opened.line, opened.column, opened.line, opened.column + 1)
            message = known["message"].replace("{0}", found[found.lastindex or 0])
            return YamlRefused("syntax", message, span, known.get("hint"))
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


_PLAIN = "plain"
"""The tag of a scalar that is not quoted."""


def read_nodes(text: str) -> yaml.Node | None:
    """Return the document's root, None when it is empty. Raises `YamlRefused`.

    libyaml is ten times as fast. Documents that it rejects are read again by PyYAML's own parser:
    the messages are written for its errors.
    """
    if _UNLIKE.search(text):
        return _read_slowly(text)
    try:
        return _read(_FastLoader(text))
    except YamlRefused as refused:
        if refused.code in _LIMITS:
            raise
    except (yaml.YAMLError, UnicodeError):
        pass
    return _read_slowly(text)


_LIMITS = ("too-large", "too-deep")
"""Codes of the errors that both parsers give."""

_UNLIKE = re.compile(r"[\t\x85\u2028\u2029\ufeff]|\?\s|[^\n]\Z")
"""Syntax that libyaml parses differently: tabs in plain text, unusual line breaks, byte order
marks, `? ` inside `{…}`, and the end of a last line without a line break."""


def _read_slowly(text: str) -> yaml.Node | None:
    try:
        return _read(_Loader(text))
    except yaml.MarkedYAMLError as error:
        raise syntax_refusal(error, text) from error
    except yaml.reader.ReaderError as error:
        raise character_refusal(text, error) from error


def _read(loader: Any) -> yaml.Node | None:
    loader.get_event()  # the start of the stream
    root: yaml.Node | None = None
    if not loader.check_event(yaml.StreamEndEvent):
        root = loader.compose_document()
    if not loader.check_event(yaml.StreamEndEvent):
        raise YamlRefused(
            "several-documents",
            "a second YAML document begins here",
            span_of(loader.peek_event()),
            "remove the line `---`: each file has one YAML document",
        )
    return root


def span_of(part: Any) -> Span:
    """Return where a node or an event of PyYAML stands."""
    first, last = part.start_mark, part.end_mark
    return Span(first.line, first.column, last.line, last.column)


def is_plain(node: yaml.ScalarNode) -> bool:
    """Whether a scalar is not quoted, and so may be a number or a boolean."""
    return node.tag == _PLAIN


class _Composer(Composer):
    """PyYAML's composer with limits. Of tags it gives `plain` alone: it resolves nothing."""

    def __init__(self) -> None:
        Composer.__init__(self)
        self._open: list[str] = []
        self._depth = self._values = 0
        self._sizes: dict[str, int] = {}

    def descend_resolver(self, parent: Any, index: Any) -> None:
        """Do nothing: paths resolve nothing either."""

    def ascend_resolver(self) -> None:
        """Do nothing, like `descend_resolver`."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        return _PLAIN if kind is yaml.ScalarNode and implicit == (True, False) else ""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[attr-defined]
        self._check_limits(event)
        if isinstance(event, yaml.AliasEvent):
            self._check_alias(event)
            self._count_alias(event)
            return super().compose_node(parent, index)
        _check_tag(event)
        # An anchor may be defined again; PyYAML would refuse it.
        self.anchors.pop(event.anchor, None)
        self._open.append(event.anchor)
        self._depth += 1
        before = self._values
        node = super().compose_node(parent, index)
        self._depth -= 1
        if anchor := self._open.pop():
            self.anchors[anchor] = node  # type: ignore[assignment]
            self._sizes[anchor] = self._values - before
        return node

    def _check_alias(self, event: Any) -> None:
        name = event.anchor
        if name not in self.anchors:
            raise YamlRefused(
                "unknown-alias",
                f"`*{name}` refers to an anchor that is not defined above",
                span_of(event),
                "write the text in quotes if it is not meant as an alias",
            )
        if name in self._open:
            raise YamlRefused("endless-alias", f"`*{name}` contains itself", span_of(event))

    def _count_alias(self, event: Any) -> None:
        """Count what an alias repeats: nothing has to be expanded to find too much."""
        self._values += self._sizes[event.anchor]
        if self._values > MAX_VALUES:
            message = f"aliases expand to more than {MAX_VALUES:,} values"
            raise YamlRefused("too-large", message, span_of(event))

    def _check_limits(self, event: Any) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            message = f"the file has more than {MAX_VALUES:,} values"
            raise YamlRefused("too-large", message, span_of(event))
        if self._depth > MAX_DEPTH:
            message = f"values are nested more than {MAX_DEPTH} levels deep"
            raise YamlRefused("too-deep", message, span_of(event))


_CParser: Any = import_module("yaml._yaml").CParser if yaml.__with_libyaml__ else yaml.SafeLoader
"""PyYAML's wheels have libyaml; what was built without it has not."""


class _FastLoader(_Composer, _CParser):  # type: ignore[misc]
    """The composer of libyaml's events."""

    def __init__(self, text: str) -> None:
        _CParser.__init__(self, text)
        _Composer.__init__(self)


class _Loader(_Composer, yaml.SafeLoader):
    """The composer of PyYAML's own events."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Composer.__init__(self)


def _check_tag(event: Any) -> None:
    if event.tag in (None, "!", "tag:yaml.org,2002:str"):
        return
    tag = event.tag.replace("tag:yaml.org,2002:", "!!")
    raise YamlRefused(
        "tag", f"the YAML tag `{tag}` is not allowed", span_of(event), "write the value without it"
    )
