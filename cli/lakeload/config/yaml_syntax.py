"""What is wrong with text that is not YAML, in sentences that help."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
