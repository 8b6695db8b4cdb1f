"""Mutations of the product's sources: found by the function and the code they change, not by file.

A mutation is a text file: two header lines, `Rule:` and `Test:`, and one or more changes. A change
is a line `@@ function` and the lines of code as in a diff: `-` goes, `+` comes, ` ` stays. How far
the code is indented does not matter, nor do comments and blank lines between its lines.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class MisplacedMutation(Exception):
    """A mutation whose code is nowhere in the sources, or at several places."""


@dataclass(frozen=True)
class Change:
    """Lines of one function, before and after, without common indentation."""

    function: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Mutation:
    """One safety taken away, and the test that must notice."""

    name: str
    rule: str
    test: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class _Place:
    file: Path
    first: int
    end: int
    indentation: str


def read_mutation(file: Path) -> Mutation:
    """Read a mutation. Raises `ValueError` when it is not written as one."""
    head, *hunks = file.read_text(encoding="utf-8").split("\n@@ ")
    header = dict(line.split(": ", 1) for line in head.splitlines() if line)
    if header.keys() != {"Rule", "Test"} or not hunks:
        raise ValueError(f"`{file.name}` needs the lines `Rule: …`, `Test: …` and `@@ function`")
    changes = tuple(_change(file.name, hunk) for hunk in hunks)
    return Mutation(file.stem, header["Rule"], header["Test"], changes)


def mutate(mutation: Mutation, sources: Path) -> dict[Path, str]:
    """Return the files below `sources` that a mutation changes, with their new content.

    Raises `MisplacedMutation` when a change fits nowhere, or at more than one place.
    """
    files = dict(read_sources(sources))
    changed: dict[Path, str] = {}
    for change in mutation.changes:
        place = _only_place(mutation, change, files)
        lines = files[place.file].splitlines()
        lines[place.first : place.end] = [
            textwrap.indent(line, place.indentation) for line in change.after
        ]
        files[place.file] = changed[place.file] = "\n".join(lines) + "\n"
    return changed


def read_sources(folder: Path) -> Mapping[Path, str]:
    """Return the text of every module below a folder."""
    return {file: file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))}


def functions(mutation: Mutation, sources: Mapping[Path, str]) -> list[str]:
    """Return the text of each function that a mutation changes, without indentation.

    Raises `MisplacedMutation`.
    """
    return [_function(mutation, change, sources) for change in mutation.changes]


def _function(mutation: Mutation, change: Change, files: Mapping[Path, str]) -> str:
    """Return the function around the place of a change."""
    place = _only_place(mutation, change, files)
    text = files[place.file]
    lines = text.splitlines()
    for function in _functions(change.function, text):
        first = min([function.lineno, *(mark.lineno for mark in function.decorator_list)]) - 1
        if first <= place.first < (function.end_lineno or 0):
            return _dedented(lines[first : function.end_lineno])
    raise AssertionError("a place is in a function")


def _change(name: str, hunk: str) -> Change:
    function, *lines = [line for line in hunk.splitlines() if line]
    if not lines or any(line[0] not in "-+ " for line in lines):
        raise ValueError(f"`{name}`: a line of code begins with `-`, `+` or a blank")
    before = tuple(line[1:] for line in lines if line[0] != "+")
    after = tuple(line[1:] for line in lines if line[0] != "-")
    if not before or before == after:
        raise ValueError(f"`{name}`: a change in `{function}` needs code to stand at, and a change")
    return Change(function.strip(), before, after)


def _only_place(mutation: Mutation, change: Change, files: Mapping[Path, str]) -> _Place:
    places = [place for file, text in files.items() for place in _places(change, file, text)]
    if len(places) == 1:
        return places[0]
    functions = [
        f"{file}:{node.lineno}"
        for file, text in files.items()
        for node in _functions(change.function, text)
    ]
    where = [f"{place.file}:{place.first + 1}" for place in places] or functions
    raise MisplacedMutation(
        f"{mutation.name}.patch ({mutation.rule}) fits at {len(places)} places of a function "
        f"`{change.function}` and must fit at exactly one; looked in: {', '.join(where) or '-'}\n"
        + "\n".join(change.before)
        + "\nIs the safety still there? Then write the patch for the code as it is now."
    )


def _places(change: Change, file: Path, text: str) -> Iterator[_Place]:
    lines = text.splitlines()
    for function in _functions(change.function, text):
        for first in range(function.lineno - 1, function.end_lineno or 0):
            if (end := _end(lines, first, change.before)) is not None:
                depth = _depth(lines[first]) - _depth(change.before[0])
                yield _Place(file, first, end, " " * depth)


def _functions(name: str, text: str) -> Iterator[ast.FunctionDef]:
    if f"def {name}(" in text:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield node


def _end(lines: Sequence[str], first: int, wanted: Sequence[str]) -> int | None:
    """Return the index after the code `wanted` that begins at `first`; None if it is not there."""
    if not _is_code(lines[first]):
        return None
    found: list[str] = []
    for index in range(first, len(lines)):
        if _is_code(lines[index]):
            found.append(lines[index])
            if len(found) == len(wanted):
                return index + 1 if _dedented(found) == _dedented(wanted) else None
    return None


def _dedented(lines: Sequence[str]) -> str:
    return textwrap.dedent("\n".join(lines))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
