"""What libyaml reads is what PyYAML's own parser reads, marks included."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml

from lakeload.config import yaml_tree
from lakeload.config.yaml_tree import YamlRefused, span_of
from tests.environments import many

ROOT = Path(__file__).parents[3]
TEXTS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "configs").glob("*.yaml"))]
PIECES = (
    *("{", "}", "[", "]", ": ", ":", "- ", "? ", "#", " #", '"', "'", "|\n", ">\n", "|-\n", "\\"),
    *("&a ", "*a", "!x ", "---\n", "...\n", "%", "@", "`", "<<: ", ",", "null", "~", "${X}"),
    *("\n", "\r\n", "\r", "\t", "  ", "é", "😀", "\u2028", "\x85", "\ufeff", "\x07"),
)


def test_libyaml_reads_changed_documents_like_the_parser_that_writes_the_messages() -> None:
    choose, read = random.Random(7), 0  # noqa: S311
    for _ in range(many(4000)):
        text = changed(choose)
        try:
            nodes = yaml_tree._read(yaml_tree._FastLoader(text))
        except (yaml.YAMLError, YamlRefused):
            continue
        if not yaml_tree._UNLIKE.search(text):
            read += 1
            assert tree(nodes) == tree(yaml_tree._read_slowly(text)), text
    assert read > many(4000) / 10


def changed(choose: random.Random) -> str:
    """Return a piece of a document of ours with one to three changes."""
    lines = choose.choice(TEXTS).splitlines(keepends=True)
    start = choose.randrange(len(lines))
    text = "".join(lines[start : start + 12])
    for _ in range(choose.randint(1, 3)):
        place = choose.randrange(len(text) + 1)
        left = text[place + choose.choice((0, 0, 3)) :]
        text = text[:place] + choose.choice(PIECES) + left
    return text


def tree(node: Any) -> Any:
    """Return a node as tuples, with its marks."""
    if node is None or isinstance(node, tuple):
        return node and tuple(map(tree, node))
    values = node.value if isinstance(node.value, str) else [tree(value) for value in node.value]
    return (node.tag, values, span_of(node))
