"""Secrets beyond their type: values with stray white space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lakeload.config.document import Branch, Entry, Items, Leaf, Tree
from lakeload.config.page import Page
from lakeload.config.problems import Problem
from lakeload.config.secret_names import SECRET_SETTINGS, SHORTHAND


def reference_problems(page: Page, tree: Tree, environment: Mapping[str, str]) -> list[Problem]:
    """Warn where a secret that can be read here begins or ends with white space.

    It was most likely copied along, and AWS then refuses the secret without saying why.
    A secret that is not there is no problem of the document.
    """
    found = []
    for path, name, entry in _secrets(tree):
        where, value = _value(entry.value, environment, Path(page.path).parent)
        if value != value.strip():
            found.append(
                page.problem(
                    "warning",
                    "white-space",
                    f"the value of `{name}` in {where} begins or ends with white space",
                    entry.value.span if isinstance(entry.value, Leaf) else entry.key,
                    hint="remove it there unless it belongs to the secret",
                    key=path,
                )
            )
    return found


def _secrets(tree: Tree, path: str = "") -> Iterator[tuple[str, str, Entry]]:
    if isinstance(tree, Items):
        for i, item in enumerate(tree.items):
            yield from _secrets(item, f"{path}[{i}]")
    if isinstance(tree, Branch):
        for name, entry in tree.entries.items():
            below = f"{path}.{name}" if path else name
            if name == "headers" and isinstance(entry.value, Branch):
                headers = entry.value.entries.items()
                yield from ((f"{below}.{header}", header, value) for header, value in headers)
            elif name in SECRET_SETTINGS:
                yield below, name, entry
            else:
                yield from _secrets(entry.value, below)


def _value(tree: Tree, environment: Mapping[str, str], folder: Path) -> tuple[str, str]:
    """Return where a reference leads and the value there; '' when it cannot be read here."""
    if isinstance(tree, Leaf) and (match := SHORTHAND.fullmatch(tree.text)):
        return f"`{match[1]}`", environment.get(match[1], "")
    if isinstance(tree, Branch) and len(tree.entries) == 1:
        [(kind, entry)] = tree.entries.items()
        name = entry.value.value if isinstance(entry.value, Leaf) else None
        if kind == "env" and isinstance(name, str):
            return f"`{name}`", environment.get(name, "")
        if kind == "file" and isinstance(name, str):
            return f"the file `{name}`", _file_text(folder / name)
    return "", ""


def _file_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read(64 << 10).removesuffix("\n")
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
