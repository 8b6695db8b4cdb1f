"""Terraform's language, and comments in code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

_WIDTH = 80


def comment(*sentences: str) -> str:
    """Return sentences as comments of at most 80 columns."""
    lines = [line for text in sentences for line in wrapped(text, _WIDTH - 2)]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; lines that are indented stay as they are."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line)
        else:
            lines += wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    return lines


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


@dataclass(frozen=True)
class Expression:
    """Text that is no string: a reference, or a function's name before its argument."""

    text: str


@dataclass(frozen=True)
class Call:
    """A function with one argument."""

    function: str
    argument: object


def block(kind: str, *labels: str, body: Mapping[str, object]) -> str:
    """Return a block. Where a value is '' the attributes after it are set apart by a line."""
    head = " ".join([kind, *(string(label) for label in labels)])
    return "\n".join([f"{head} {{", *_attributes(body, "  "), "}"])


def string(text: str) -> str:
    """Return a quoted string in which nothing is a template: IAM's `${*}` is `$${*}`."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("${", "$${").replace("%{", "%%{")


def label(text: str) -> str:
    """Return text as a name in Terraform: `[a-z0-9_]`."""
    return re.sub("[^a-z0-9_]", "_", text.lower())


def _attributes(body: Mapping[str, object], indent: str) -> list[str]:
    """Return the lines of a body; equals signs of neighbouring one-line attributes align."""
    lines: list[str] = []
    group: list[tuple[str, str]] = []

    def flush() -> None:
        width = max((len(key) for key, _ in group), default=0)
        lines.extend(f"{indent}{key:<{width}} = {value}" for key, value in group)
        group.clear()

    for key, value in body.items():
        name = key if _IDENTIFIER.fullmatch(key) else string(key)
        first, *rest = _value(value, indent)
        if rest:
            flush()
            lines += [f"{indent}{name} = {first}", *rest]
        else:
            group.append((name, first))
    flush()
    return lines


def _value(value: object, indent: str) -> list[str]:
    """Return the lines of a value; the first one follows the equals sign."""
    deeper = f"{indent}  "
    if isinstance(value, Expression):
        return [value.text]
    if isinstance(value, Call):
        first, *rest = _value(value.argument, indent)
        lines = [f"{value.function}({first}", *rest]
        return [*lines[:-1], f"{lines[-1]})"]
    if isinstance(value, Mapping):
        return ["{", *_attributes(value, deeper), f"{indent}}}"] if value else ["{}"]
    if isinstance(value, str):
        return [string(value)]
    if isinstance(value, Sequence):
        lines = ["["]
        for item in value:
            first, *rest = _value(item, deeper)
            lines += [f"{deeper}{first}", *rest]
            lines[-1] += ","
        return [*lines, f"{indent}]"]
    return [json.dumps(value)]
