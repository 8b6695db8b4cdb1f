"""Every line of YAML that a message of the product holds is one that its setting takes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from lakeload.config.document import TreeReader, plain_data
from lakeload.config.page import Page
from lakeload.config.yaml_tree import YamlRefused, read_nodes
from lakeload.documents.destination import Destination
from lakeload.documents.explain import sections
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from tests.hints import FOLDERS, ROOT, product_texts
from tests.reference import pipeline_sections

_LINE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)*): ([^`]+)`")
_TO_FILL = re.compile(r"…|<|\{[a-z]+\}|[A-Z]+:[A-Z]|\bNAME\b|\bCOLUMN\b|Literal")
"""What is filled in when the message is made, or by its reader."""
_OTHERS = {
    "key", "label", "compaction",  # no settings: an example of YAML, an object's name, a log
}  # fmt: skip


def _lines() -> Iterator[tuple[str, str]]:
    """Yield the lines that messages hold, each as its key and its value."""
    for _, (text, _) in product_texts():
        yield from _LINE.findall(text)
    for folder in FOLDERS:
        for pattern in ("*.toml", "*.yml"):
            for path in sorted((ROOT / folder).rglob(pattern)):
                yield from _LINE.findall(path.read_text("utf-8"))


@cache
def _fields() -> dict[str, list[Any]]:
    """Return what may be the value of a setting of this name, wherever it stands."""
    found: dict[str, list[Any]] = defaultdict(list)
    models: list[tuple[str, type[BaseModel]]] = [*sections(Destination), *pipeline_sections()]
    for _, model in models:
        for name, field in model.model_fields.items():
            found[name].append(Annotated[field.annotation, field, *field.metadata])
    return found


def _is_taken(key: str, line: str) -> bool:
    try:
        node = read_nodes(line)
    except YamlRefused:
        return False
    assert node is not None
    data: Any = plain_data(TreeReader(Page("hint", line), {}).read(node))
    if any(key.lower() in map(str.lower, one.options) for one in FILE_FORMATS.values()):
        return True
    for kind in _fields().get(key, ()):
        try:
            TypeAdapter(kind).validate_python(data[key])
        except ValidationError:
            continue
        return True
    return False


def test_each_line_of_a_message_can_be_pasted() -> None:
    # One test: what reads the product when tests are collected does so in every worker.
    lines = {
        (key, value) for key, value in _lines() if not _TO_FILL.search(value) and key not in _OTHERS
    }
    assert len(lines) > 50
    assert [line for line in sorted(lines) if not _is_taken(line[0], ": ".join(line))] == []


def test_lines_that_cannot_be_pasted_are_found() -> None:
    for line in ("spark.reader: AUTO", "decimal_mark: ,", "mode: MERGE", "no_setting: 1"):
        assert not _is_taken(line.partition(":")[0], line)
