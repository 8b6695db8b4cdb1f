"""The documents that `lakeload init` writes are valid, whatever is chosen."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.config.document import Branch, Leaf, TreeReader
from lakeload.config.page import Page
from lakeload.config.yaml_tree import read_nodes
from lakeload.documents.load import inspect_all, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.init.database import Database, DatabaseTable
from lakeload.init.documents import in_glue, variables
from lakeload.init.files import next_steps
from lakeload.init.interview import interview
from lakeload.init.table_settings import TableFiles, shared_source, table_lines, yaml_text
from tests.environments import many
from tests.inputs import files_of
from tests.unit.init.choices import (
    CATALOGS,
    FLAGS,
    IDENTITIES,
    REQUIRED,
    ROLE,
    SOURCES,
    init,
    write,
)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_init_files_of_every_source_are_valid(catalog: str, tmp_path: Path) -> None:
    for source in SOURCES:
        answers = write(tmp_path, {**CATALOGS[catalog], **source})

        document = load_pipeline(tmp_path / "pipeline.yml", {})
        assert document.warnings == ()
        [table] = table_specs(document)
        assert files_of(table).format == answers.source
        assert files_of(table).paths[0].endswith(source["path"])
        assert table.source == "orders"
        assert table.mode == (answers.mode or "APPEND")
        assert table.primary_key == (("id", "line no") if answers.primary_key else ())


@pytest.mark.parametrize(
    ("mode", "incremental"), [("APPEND", True), ("UPSERT", True), ("OVERWRITE", False)]
)
def test_init_files_are_loaded_once_whatever_the_mode(
    mode: str, incremental: bool, tmp_path: Path
) -> None:
    key = {"primary_key": "id"} if mode == "UPSERT" else {}
    write(tmp_path, {"table_format": "ICEBERG", "mode": mode, **key})

    [table] = table_specs(load_pipeline(tmp_path / "pipeline.yml", {}))
    assert (table.input.incremental, table.append_again) == (incremental, None)


@pytest.mark.parametrize(
    ("url", "sts"),
    [
        ("http://minio:9000", "http://minio:9000"),
        ("https://b.vpce-1.s3.us-east-1.vpce.amazonaws.com", None),
    ],
)
def test_init_role_of_another_store_uses_its_endpoint(
    url: str, sts: str | None, tmp_path: Path
) -> None:
    write(tmp_path, {"endpoint_url": url, "role_arn": ROLE})

    document = load_pipeline(tmp_path / "pipeline.yml", {})
    assert destination_spec(document.destination).endpoints.sts == sts
    assert document.warnings == ()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_init_files_of_every_identity_are_valid(catalog: str, tmp_path: Path) -> None:
    for identity in IDENTITIES.values():
        answers = write(tmp_path, {**CATALOGS[catalog], **identity, "prefix": "a/b"})

        files = [tmp_path / "destination.yml", tmp_path / "pipeline.yml"]
        assert [item.problems for item in inspect_all(files, {})] == [(), ()]
        document = load_pipeline(files[1], {}).destination
        spec = destination_spec(document)
        assert (spec.table_format, spec.prefix) == (answers.table_format, "a/b")
        assert spec.credentials.role_arn == (answers.role_arn or None)
        assert spec.credentials.profile == (answers.profile or None)
        assert (spec.credentials.access_key_id is None) == (answers.credentials != "KEYS")
        assert spec.glue_database_prefix == (
            answers.glue_prefix if in_glue(asdict(answers)) else ""
        )
        if answers.catalog:
            assert spec.iceberg.catalog.type == answers.catalog
            assert spec.iceberg.catalog.uri == (answers.catalog_uri or None)


def test_the_variables_are_those_the_documents_refer_to(tmp_path: Path) -> None:
    for catalog, identity in itertools.product(CATALOGS.values(), IDENTITIES.values()):
        answers = write(tmp_path, {**catalog, **identity})

        tree = TreeReader(Page("d", (tmp_path / "destination.yml").read_text()), {})
        node = read_nodes(tree.page.text)
        assert node is not None
        assert set(_references(tree.read(node))) == {v.name for v in variables(answers)}


def _references(tree: object) -> Iterator[str]:
    if isinstance(tree, Branch):
        for name, entry in tree.entries.items():
            if name == "env" and isinstance(entry.value, Leaf):
                yield entry.value.text
            yield from _references(entry.value)


def test_a_shell_reads_the_secrets_by_the_line_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), Path("a b'c")):
        init(str(folder), *FLAGS, "--role-arn", ROLE)
        file = folder / ".env"
        script = f'. {shlex.quote(str(file.absolute()))}; printf %s "$LAKELOAD_EXTERNAL_ID"'
        unfilled = subprocess.run(
            ["sh", "-c", script],
            env={**os.environ, "LAKELOAD_EXTERNAL_ID": "kept"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert unfilled.stdout == "kept"
        name = "LAKELOAD_EXTERNAL_ID="
        file.write_text(file.read_text().replace(f"# {name}", f"{name}'a b$c'"))
        line = next_steps(folder, secrets=True)[0].command

        script = f'{line}; "$0" -c \'import os; print(os.environ["LAKELOAD_EXTERNAL_ID"])\''
        shell = subprocess.run(
            ["sh", "-c", script, sys.executable], capture_output=True, text=True, check=True
        )
        assert shell.stdout == "a b$c\n"


def test_the_connection_test_of_a_database_is_that_of_its_pipeline(tmp_path: Path) -> None:
    commands = [step.command for step in next_steps(tmp_path, secrets=False, database="x")]
    assert f"lakeload test-connection {tmp_path / 'pipeline.yml'}" in commands


def test_the_commands_that_are_printed_exist(tmp_path: Path) -> None:
    names = set[str]()
    for choices in CATALOGS.values():
        answers = interview({**REQUIRED, **choices}, {"name": "n"}, None)
        commands = [
            step.command.split() for step in next_steps(tmp_path, secrets=bool(variables(answers)))
        ]
        ours = [words[1] for words in commands if words[0] == "lakeload"]

        assert len(ours) == 3
        names.update(ours)
    for name in names:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


@settings(max_examples=many(300))
@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zl", "Zp"))))
def test_yaml_text_reads_back_as_what_was_written(value: str) -> None:
    _read_back(value)


@pytest.mark.parametrize(
    "value",
    ["yes", "NULL", "0123", "1e3", "a: b", "a #b", "- a", "*a", "{a}", "'", '"', "\\", "~", "a:",
     "arn:aws:iam::1:role/x", "s3://b/*.csv", "2026-11-21", "", " a ", "größe", "😀", "a\tb"],
)  # fmt: skip
def test_text_that_yaml_could_take_for_something_else_reads_back(value: str) -> None:
    _read_back(value)


def _read_back(value: str) -> None:
    if "${" in value:
        return
    text = f"key: {yaml_text(value)}   # a comment\n"
    node = read_nodes(text)
    assert node is not None
    tree: Any = TreeReader(Page("d", text), {}).read(node)
    assert tree.entries["key"].value.value == value


def test_table_lines_name_a_table_that_would_begin_with_an_underscore() -> None:
    tables = [TableFiles(name, ("a.csv",), "CSV") for name in ("04_sp500", "orders")]
    lines = [list(table_lines(table, shared_source(tables))) for table in tables]
    assert lines[0][:2] == [
        '  - table: "04_sp500"',
        "    name: t_04_sp500   # folders that begin with _ may be hidden",
    ]
    assert not any("name:" in line for line in lines[1])


def test_database_writes_the_name_in_the_lake_where_it_differs_unless_taken() -> None:
    names = (
        *("public._orders", "public._users", "public.Users", 'public."a._b"'),
        *('public."Order Details"', 'public."order-lines"', "public.order_lines"),
    )
    tables = tuple(DatabaseTable(name, "table") for name in names)
    lines = list(
        Database("postgresql://db.example.com/shop", password=False, tables=tables).table_lines(
            "", append_only=True
        )
    )
    shown = [next((line for line in table if "name:" in line), "") for table in lines]
    assert [line.partition("   #")[0] for line in shown] == [
        "    name: orders",
        *("", ""),
        "    name: a_b",
        "    name: Order_Details",
        *("", ""),
    ]
