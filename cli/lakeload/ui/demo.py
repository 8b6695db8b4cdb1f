"""Screen output of the demo: steps, commands, the lake and query results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from lakeload.lake.query import Answer
from lakeload_jobs.core.sizes import format_size

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class TreeLeaf:
    """One object in the tree: its key, its bytes, and whether the last load made it."""

    key: str
    size: int
    new: bool


def show_heading(console: Console, text: str) -> None:
    """Begin a part of the demo."""
    console.print()
    console.print(Rule(Text(text, style="bold"), align="left", style="cyan"))


def show_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Show names and values, aligned; where no terminal limits them, each in one line."""
    if not console.is_terminal:
        pairs = list(facts)
        width = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            console.print(Text(f"  {name:{width}}  {value}"), soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(f"  {name}"), Text(value))
    console.print(grid)


def show_document(console: Console, name: str, text: str) -> None:
    """Show a YAML document as it lies in the folder."""
    console.print()
    console.print(Text(f"  {name}", style="bold"))
    _show_code(console, text, "yaml", indent=4)


def show_command(console: Console, arguments: Sequence[str]) -> None:
    """Show a command the way it is typed; its own output follows."""
    console.print()
    console.print(Text.assemble(("$ ", "green"), (" ".join(("lakeload", *arguments)), "bold")))


def gathered(leaves: Sequence[TreeLeaf]) -> list[TreeLeaf]:
    """Return one leaf for all files of a kind in a folder, and one for the new ones of them.

    Iceberg names its files by UUID: what counts is how many there are.
    """
    groups: dict[tuple[str, bool], list[TreeLeaf]] = {}
    for leaf in leaves:
        folder, _, name = leaf.key.rpartition("/")
        kind = f"{folder}/*.{name.partition('.')[2]}" if "." in name else leaf.key
        groups.setdefault((kind, leaf.new), []).append(leaf)
    return [
        TreeLeaf(f"{kind} × {len(found)}", sum(leaf.size for leaf in found), new)
        for (kind, new), found in sorted(groups.items())
    ]


def show_tree(console: Console, root: str, leaves: Sequence[TreeLeaf]) -> None:
    """Show the lake's objects as the tree that their keys make, the new ones marked."""
    tree = Tree(Text(root, style="bold"), guide_style="dim")
    _add_branches(tree, [(leaf.key.split("/"), leaf) for leaf in leaves])
    console.print(tree, soft_wrap=True)


def _add_branches(tree: Tree, leaves: Sequence[tuple[list[str], TreeLeaf]]) -> None:
    """Add what the first part of each path makes; a folder with one folder in it is one branch."""
    for name, group in groupby(leaves, key=lambda item: item[0][0]):
        members = [(path[1:], leaf) for path, leaf in group]
        if not members[0][0]:
            for _, leaf in members:
                tree.add(_leaf_label(name, leaf))
            continue
        folders = f"{name}/"
        while len({path[0] for path, _ in members}) == 1 and all(path[1:] for path, _ in members):
            folders += f"{members[0][0][0]}/"
            members = [(path[1:], leaf) for path, leaf in members]
        _add_branches(tree.add(Text(folders, style="blue")), members)


def _leaf_label(name: str, leaf: TreeLeaf) -> Text:
    size = (f"  {format_size(leaf.size)}", "dim")
    if leaf.new:
        return Text.assemble((name, "green"), size, ("  new", "green"))
    return Text.assemble(name, size)


def show_query(console: Console, sql: str, answer: Answer) -> None:
    """Show a query and its answer."""
    console.print()
    _show_code(console, sql, "sql", indent=2)
    console.print()
    show_answer(console, answer)


def show_answer(console: Console, answer: Answer) -> None:
    """Show columns and rows; numbers are on the right."""
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for index, name in enumerate(answer.columns):
        numeric = all(_NUMBER.fullmatch(str(row[index])) for row in answer.rows)
        table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
    for row in answer.rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)


def _show_code(console: Console, text: str, language: str, *, indent: int) -> None:
    """Show highlighted lines, indented; without the padding that a pipe would keep."""
    code = Syntax("", language, theme="ansi_dark").highlight(text.rstrip())
    for line in code.split():
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def width_of(answer: Answer) -> int:
    """Return how many columns of a terminal its rows take."""
    lines = (answer.columns, *answer.rows)
    return sum(4 + max(len(cell(value)) for value in column) for column in zip(*lines, strict=True))


def cell(value: str | int | None) -> str:
    """Return a value as it is shown."""
    if value is None:
        return "null"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def show_kept(console: Console, folder: Path) -> None:
    """Say where everything is, the logs of a failed step among it."""
    console.print(Text(f"\nEverything is kept in {folder}"), soft_wrap=True)


def show_end(console: Console, seconds: float, *, kept: bool) -> None:
    """Say how long it took and that it is over."""
    left = "" if kept else " Nothing of it is left on this machine."
    console.print()
    console.print(Text.assemble(("✓ ", "green"), f"The demo took {seconds:.0f} s.{left}"))
