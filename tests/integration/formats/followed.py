"""Pipelines of YAML whose tables are refused, changed as their hints say, and loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from lakeload.commands.source_tables import with_found_tables
from lakeload.config.problems import has_errors
from lakeload.documents.load import PipelineDocument, check, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.formats.registry import commands_of
from lakeload.formats.tables import TablesRequest
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import (
    build_job_spec,
    check_options,
    new_attempt,
    retry_tables,
    run_options,
)
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import run
from tests.hints import follow, follows

Rows = Sequence[Mapping[str, Any]]
File = str | bytes | Rows | pa.Table
Content = File | Mapping[str, File]
"""A file, or the files of a folder by their names."""
Settings = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A table that is refused, and the clause of its hint that lets its rows be loaded.

    `before` is loaded first, with the settings `table`; then `file` with `then` too. `values` fill
    in what the clause leaves open; what it says in words, `by_hand` does. `path` is what
    the setting has behind the path of the file or folder, and `beside` the file of a folder that
    the clause has loaded as a table of its own.
    """

    clause: str
    file: Content
    before: Content | None = None
    table: Settings = field(default_factory=dict)
    then: Settings = field(default_factory=dict)
    values: Settings = field(default_factory=dict)
    by_hand: Callable[[Settings, Path], object] | None = None
    rows: int = 1
    path: str = ""
    beside: str = ""
    elsewhere: bool = False
    """Whether another pipeline loads what the hint says."""


class Shop:
    """A pipeline in a folder, loaded in the tests' Spark session."""

    def __init__(self, spark: SparkSession, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = {"version": 1, "name": "shop", "namespace": "shop", **settings}
        self._spark = spark
        self.job = ""
        """The id of the last job."""

    def document(self, tables: Sequence[Settings], **settings: Any) -> Settings:
        """Return a pipeline of tables."""
        return {**self.settings, **settings, "tables": list(tables)}

    def read(self, tables: Sequence[Settings], **settings: Any) -> PipelineDocument:
        """Write a pipeline of tables and return it as the product reads it."""
        document = self.document(tables, **settings)
        path = self.folder / "pipeline.yml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        problems = check([path], {})
        assert not has_errors(problems), [(p.key, p.message) for p in problems]
        return load_pipeline(path, {})

    def load(
        self,
        tables: Sequence[Settings],
        *,
        full_refresh: bool = False,
        limit: int | None = None,
        retry: str | None = None,
        **settings: Any,
    ) -> dict[str, TableResult]:
        """Load tables and return the result of each; `full_refresh`, `limit` and `retry` are
        the options `--full-refresh`, `--limit` and `--retry-rejected` of the command."""
        read = with_found_tables(self.read(tables, **settings), "sync", keys=True)
        attempt = new_attempt(None)
        runs = RunFolder(self.folder / attempt.attempt_id)
        runs.path.mkdir()
        destination, specs = destination_spec(read.destination), table_specs(read)
        options = run_options(read, full_refresh=full_refresh, limit=limit)
        if retry is not None:
            specs = retry_tables(specs, retry, options)
        check_options(specs, destination.table_format, options)
        spec = build_job_spec(read, destination, specs, attempt, runs, options)
        with EventLog(spec.events_path) as events:
            result = run(self._spark, spec, events)
        assert result.error is None, result.error
        self.job = attempt.job_id
        return {table.table: table for table in result.tables}

    def reset(self, tables: Sequence[Settings], **settings: Any) -> None:
        """Remove the rows of tables, as `lakeload reset` does."""
        read = self.read(tables, **settings)
        request = TablesRequest("reset", read, (), lambda _: None)
        commands = commands_of(read.destination.model.table_format)
        report = commands.reset(request, with_log=False, act=True)
        assert report.exit_code == 0, report

    def write(self, name: str, content: Content) -> Path:
        """Write a file of the folder: text, bytes, or rows as Parquet; or a folder of such."""
        path = self.folder / name
        if isinstance(content, Mapping):
            for own, file in content.items():
                self.write(f"{name}/{own}", file)
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            given = (
                content if isinstance(content, pa.Table) else pa.Table.from_pylist(list(content))
            )
            pq.write_table(given, path)
        return path


def follow_all(file: str, shop: Shop, cases: Mapping[str, Case], **settings: Any) -> None:
    """Load the tables of all cases: as they are refused, and then as the hints say.

    Three jobs for all cases: each has a table of its own. `file` is the test, for the list.
    """
    numbered = list(enumerate(cases.items()))
    tables = {name: _table(shop, number, name, case) for number, (name, case) in numbered}
    first = [tables[name] for name, case in cases.items() if case.before is not None]
    wrong: dict[str, object] = {}
    for name, result in (shop.load(first, **settings) if first else {}).items():
        if result.error:
            wrong[name] = "before", result.error
    refused = {
        name: {**tables[name], "path": _file(shop, number, "2", case.file) + case.path, **case.then}
        for number, (name, case) in numbered
    }
    results = shop.load(list(refused.values()), **settings)
    changed: list[Settings] = []
    elsewhere: list[Settings] = []
    for name, case in cases.items():
        said = results[name].error
        clause = clause_of(case.clause, (said and said.hint) or "")
        if said is None or clause is None:
            wrong.setdefault(name, said or results[name])
            continue
        follows(file, name, said.hint or "")
        done = elsewhere if case.elsewhere else changed
        done.append(edited := _changed(shop, refused[name], case, clause))
        if case.beside:
            path = f"{refused[name]['path'].removesuffix(case.path)}/{case.beside}"
            second = {"table": f"{name}, beside", "name": f"{edited['name']}_2", "path": path}
            done.append({**edited, **second})
    loaded = shop.load(changed, **settings)
    if elsewhere:
        loaded |= shop.load(elsewhere, **{**settings, "name": "elsewhere"})
    for name, result in loaded.items():
        if result.error or result.rows != cases[name.removesuffix(", beside")].rows:
            wrong[name] = result.error or f"{result.rows} rows"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


def follow_one(
    file: str, case: str, shop: Shop, begins: str, table: Settings, **values: Any
) -> None:
    """Load a table of a pipeline that is refused, and again as a clause of its hint says, which
    is about a setting of any place. The pipeline is that of the shop and stays as it was."""
    [result] = shop.load([table]).values()
    assert result.error is not None, (case, "was loaded")
    clause = clause_of(begins, result.error.hint or "")
    assert clause is not None, (case, result.error)
    follows(file, case, result.error.hint or "")
    changed = follow(shop.document([table]), clause, "tables[0].table", **values)
    [result] = shop.load(changed.pop("tables"), **changed).values()
    assert result.error is None, (case, result.error)


def clause_of(begins: str, hint: str) -> str | None:
    """Return the clause of a hint that begins so, to the end of the code that is begun there."""
    at = hint.find(begins)
    if at < 0:
        return None
    end = at + len(begins)
    return hint[at : hint.index("`", end) + 1] if begins.count("`") % 2 else hint[at:end]


def _changed(shop: Shop, table: Settings, case: Case, clause: str) -> Settings:
    if case.by_hand is not None:
        changed: Settings = json.loads(json.dumps(table))
        case.by_hand(changed, shop.folder)
        return changed
    document = shop.document([table])
    followed = follow(document, clause, "tables[0].table", **case.values)
    assert {**followed, "tables": None} == {**document, "tables": None}, "a setting of the pipeline"
    [changed] = followed["tables"]
    return dict(changed)


def _table(shop: Shop, number: int, name: str, case: Case) -> Settings:
    table = {"table": name, "name": f"t{number}", **case.table}
    if case.before is not None:
        table["path"] = _file(shop, number, "1", case.before)
    return table


def _file(shop: Shop, number: int, name: str, content: Content) -> str:
    return str(shop.write(f"{number}/{name}", content))
