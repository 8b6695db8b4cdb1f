"""`source` and `tables` of a pipeline, as YAML, for files that were inspected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakeload.config.document import resolved
from lakeload.config.secret_names import printable
from lakeload_jobs.core.names import normalize, spelling, visible_name
from lakeload_jobs.core.yaml_lines import yaml_mapping

_LINE = 76

OptionValue = str | bool | int | tuple[str, ...]


@dataclass(frozen=True)
class TableFiles:
    """The files of one table: `paths` as the pipeline has them, and how they are read."""

    name: str
    paths: tuple[str, ...]
    format: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    """What to say of an option beside it."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """New names of columns."""
    dates: Mapping[str, str] = field(default_factory=dict)
    """Types of columns of JSON that are text and hold nothing but dates."""
    columns: tuple[str, ...] = ()
    """All columns; none where the files were not inspected."""

    def lacking(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of the names that no column has."""
        known = {*self.columns, *map(spelling, self.columns)}
        return tuple(name for name in names if known and not known & {name, spelling(name)})


@dataclass(frozen=True)
class SharedSource:
    """The format that most tables have, and the options that all of these have alike."""

    format: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def shared_source(tables: Sequence[TableFiles]) -> SharedSource:
    """Return what `source` says for all tables; the others say their own."""
    file_format = Counter(table.format for table in tables).most_common(1)[0][0]
    alike = [table for table in tables if table.format == file_format]
    options = {
        name: value
        for name, value in alike[0].options.items()
        if all(other.options.get(name) == value for other in alike)
    }
    return SharedSource(file_format, options, alike[0].notes)


def source_lines(shared: SharedSource) -> Iterator[str]:
    """Yield the lines of `source`."""
    yield "source:"
    yield "  type: FILES"
    yield f"  format: {shared.format}"
    if shared.options:
        yield from _options_lines(shared.options, shared.notes, "  ")


def table_lines(table: TableFiles, shared: SharedSource) -> Iterator[str]:
    """Yield the lines of one item of `tables`."""
    yield f"  - table: {yaml_text(table.name)}"
    if normalize(table.name).startswith("_"):
        yield f"    name: {visible_name(table.name)}   # folders that begin with _ may be hidden"
    elif normalize(table.name) != table.name:
        yield f"    name: {normalize(table.name)}   # its name in the lake"
    if len(table.paths) == 1:
        yield f"    path: {yaml_text(table.paths[0])}"
    else:
        yield "    path:"
        for path in table.paths:
            yield f"      - {yaml_text(path)}"
    own = dict(table.options)
    if table.format == shared.format:
        own = {name: value for name, value in own.items() if name not in shared.options}
    else:
        yield f"    format: {table.format}"
    if own:
        yield from _options_lines(own, table.notes, "    ")
    if table.dates:
        yield "    # The strings of JSON that are dates stay text without this line:"
        yield f"    # columns: {{types: {printable(yaml_mapping(table.dates))}}}"
    if table.rename:
        yield "    columns:"
        yield "      rename:"
        for name, new in table.rename.items():
            yield f"        {yaml_text(name)}: {yaml_text(new)}"


def _options_lines(
    options: Mapping[str, OptionValue], notes: Mapping[str, str], indent: str
) -> Iterator[str]:
    """Yield options in one line where that is short, else each in its own."""
    settings = {name: setting(name, value) for name, value in options.items()}
    line = f"{indent}options: {{{', '.join(settings.values())}}}"
    if len(line) <= _LINE and not notes.keys() & options.keys():
        yield line
        return
    yield f"{indent}options:"
    for name, text in settings.items():
        note = f"   # {printable(notes[name])}" if name in notes else ""
        yield f"{indent}  {text}{note}"


def setting(name: str, value: OptionValue) -> str:
    """Return an option as a line of YAML."""
    return f"{name}: {_scalar(value)}"


def _scalar(value: OptionValue) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_scalar(one) for one in value) + "]"
    if isinstance(value, bool | int):
        return str(value).lower()
    # In single quotes YAML leaves backslashes as they are.
    return f"'{value}'" if "\\" in value and "'" not in value else yaml_text(value)


_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./*@+-]|:(?=[A-Za-z0-9/:]))*")


def yaml_text(value: str) -> str:
    """Return text as YAML: plain where every reader takes it for text, else in double quotes."""
    if _PLAIN.fullmatch(value) and resolved(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
