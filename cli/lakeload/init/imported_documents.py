"""The documents that `import` writes, with a comment at each difference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from lakeload.config.secret_names import shown
from lakeload.documents.destination import Destination
from lakeload.documents.explain import model_at
from lakeload.documents.pipeline import pipeline_model
from lakeload.init.documents import DESTINATION, PIPELINE, VARIABLES
from lakeload.init.imported import Carried, Imported, ImportedTable, Secret, Value
from lakeload.init.table_settings import yaml_text
from lakeload.sources.registry import SOURCES
from lakeload_jobs.core.names import normalize

FULL_REFRESH = "pipeline-full-refresh.yml"
"""The pipeline of tables that are loaded as a whole, where others load what is new."""

_WIDTH = 98


def imported_documents(done: Imported, name: str) -> dict[str, str]:
    """Return the text of each document by its file's name; `name` is the pipeline's.

    A destination is written if the configuration has one. Tables that are loaded as a whole and
    those that load what is new are two pipelines, because `incremental` holds for all of a source.
    """
    written = {}
    if done.destination:
        written[DESTINATION] = _destination(done)
    new = [table for table in done.tables if table.incremental]
    whole = [table for table in done.tables if not table.incremental]
    if new and whole:
        written[PIPELINE] = _pipeline(done, name, new)
        written[FULL_REFRESH] = _pipeline(done, f"{name[:113]}-full-refresh", whole)
    else:
        written[PIPELINE] = _pipeline(done, name, done.tables)
    return written


def _destination(done: Imported) -> str:
    lines = [
        f"# Where the data goes. From a configuration of {done.product.title}.",
        "version: 1",
        *_lines(Destination, done.destination),
    ]
    return "\n".join(lines) + "\n"


def _pipeline(done: Imported, name: str, tables: Sequence[ImportedTable]) -> str:
    loads_new = [table.incremental for table in tables] or [done.product.incremental]
    incremental = any(loads_new)
    settings = {
        "name": Carried("", name),
        "destination": Carried("", DESTINATION),
        **done.pipeline,
        "source.type": Carried("", "FILES"),
        "source.format": Carried("", "NDJSON", _FORMAT),
        "source.incremental": Carried("", incremental, _INCREMENTAL if incremental else ""),
    }
    model = pipeline_model(SOURCES["FILES"])
    lines = [
        f"# What is loaded. From a configuration of {done.product.title}.",
        "version: 1",
        *_lines(model, settings),
        "tables:",
    ]
    named: set[str] = set()
    for table in tables or [ImportedTable("", {"table": Carried("", "example", _EXAMPLE)})]:
        lines += _table(table, named)
    return "\n".join(lines) + "\n"


_FORMAT = (
    "TO FILL IN: CSV, JSON, NDJSON, PARQUET, ORC or AVRO. lakeload reads files: the other "
    "product's source has to be exported to files, in S3 or on this machine."
)
_INCREMENTAL = "Each file is loaded once; each run loads new ones."
_EXAMPLE = "TO FILL IN: the configuration has no tables. One item for each table."
_PATH = "TO FILL IN: the files of this table, as `s3://bucket/folder/` or a path from here."


def _table(table: ImportedTable, named: set[str]) -> Iterator[str]:
    settings = dict(table.settings)
    one = settings.setdefault("table", Carried("", "table"))
    if str(one.value) in named and settings.keys() & {"namespace", "name"}:
        # The same name in two namespaces, or for two targets: the target keeps it.
        name = settings.setdefault("name", replace(one, differs=""))
        space = settings.get("namespace")
        one = replace(one, value=f"{space.value}_{one.value}" if space else name.value)
        settings["table"] = one
    named.add(str(one.value))
    if "name" in settings and settings["name"].value == settings["table"].value:
        del settings["name"]
    folder = normalize(str(one.value)) or "table"
    settings["path"] = Carried("", f"TO-FILL-IN/{folder}/", _PATH)
    model = model_at(pipeline_model(SOURCES["FILES"]), ("tables",))
    assert model is not None  # noqa: S101
    lines = list(_lines(model, settings))
    first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    yield from (f"  {line}" for line in lines[:first])
    yield f"  - {lines[first]}"
    yield from (f"    {line}" for line in lines[first + 1 :])


def _lines(
    model: type[BaseModel], settings: Mapping[str, Carried], above: str = ""
) -> Iterator[str]:
    """Yield the settings in the order of the model, each below what differs."""
    for name in model.model_fields:
        path = f"{above}{name}"
        if path in settings:
            one = settings[path]
            yield from _comment(one)
            if isinstance(one.value, Mapping):
                yield f"{name}:"
                yield from (f"  {_text(key)}: {_text(kind)}" for key, kind in one.value.items())
            else:
                yield f"{name}: {_text(one.value)}"
        elif any(other.startswith(f"{path}.") for other in settings):
            below = model_at(model, (name,))
            assert below is not None, path  # noqa: S101
            yield f"{name}:"
            yield from (f"  {line}" for line in _lines(below, settings, f"{path}."))


def _comment(one: Carried) -> list[str]:
    if not one.differs:
        return []
    theirs = f"`{shown(one.theirs, 200)}`: " if one.theirs else ""
    return [
        f"# {line}"
        for line in textwrap.wrap(
            theirs + one.differs, _WIDTH - 8, break_long_words=False, break_on_hyphens=False
        )
    ]


def _text(value: Value) -> str:
    if isinstance(value, Secret):
        return f"{{env: {VARIABLES[value.path].name}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(_text(one) for one in value)}]"
    if isinstance(value, bool | int):
        return str(value).lower()
    assert isinstance(value, str)  # noqa: S101
    # What looks like a reference to the environment was none of lakeload's.
    return yaml_text(value.replace("${", "$${"))
