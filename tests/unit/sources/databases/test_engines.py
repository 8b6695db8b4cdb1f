"""Contract of an engine of databases: its facts and its SQL, without a server."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import sqlglot
from pydantic_core import PydanticCustomError

from lakeload.commands.jars import JarSet
from lakeload.commands.policy import For
from lakeload.config.model import FINDINGS
from lakeload.machine.jars.pins import SETS
from lakeload.sources.databases.settings import JdbcSettings, JdbcTable
from lakeload.sources.databases.source_type import JDBC
from lakeload.sources.databases.url import parse_url
from lakeload.sources.datasets import dataset_of_table
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed, MachineNotReady
from lakeload_jobs.contract.spec import Consistency, DatabaseType, JdbcInput, ReaderChoice
from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.cursor_sql import Cursor
from lakeload_jobs.sources.databases.engines.base import TLS_MODES, Catalog, Engine
from lakeload_jobs.sources.databases.engines.registry import BY_SCHEME, BY_URL, ENGINES

OF_A_DRIVER = "jdbc:h2:mem:shop"
VALUES: dict[Kind, tuple[str, ...]] = {
    "INTEGER": ("0", "-7", "9223372036854775807"),
    "DATE": ("0001-01-01", "9999-12-31"),
    "TIMESTAMP": ("2024-02-29 12:00:00", "2024-02-29 12:00:00.123456"),
    "TIMESTAMPTZ": ("2024-02-29 12:00:00", "2024-02-29 12:00:00.123456"),
    "TEXT": ("", "o'clock", "a\\b", "a\\", "ä\n"),
}
NAMES = ("orders", "two words", 'a"b', "a`b", "a'b", "a;b -- c")
WRITTEN = re.compile(r"X'(?P<hex>[0-9a-f]*)'|'(?P<text>(?:[^']|'')*)'|(?P<number>-?\d+)")

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
with_urls = pytest.mark.parametrize(
    "engine", [one for one in ENGINES.values() if one.facts.schemes],
    ids=[name for name, one in ENGINES.items() if one.facts.schemes],
)  # fmt: skip


def settings_of(engine: Engine, **settings: object) -> JdbcSettings:
    """Return the settings of a source whose URL is the example."""
    url = engine.facts.example or OF_A_DRIVER
    return JdbcSettings.model_validate({"type": "JDBC", "url": url, **settings})


def input_of(engine: Engine, table: str = "sales.orders", **settings: object) -> JdbcInput:
    """Return what the job is told of a table."""
    columns = JdbcTable.model_construct(table=table)
    return JDBC.written(settings_of(engine, **settings), columns)


def refusal_of(url: str) -> str:
    """Return what is said of a wrong URL."""
    with pytest.raises(PydanticCustomError) as raised:
        parse_url(url)
    return str((raised.value.context or {})[FINDINGS][0].message)


def cursors(engine: Engine) -> list[tuple[Cursor, str]]:
    """Return a cursor of each type, with each of the values of its kind."""
    return [
        (Cursor(engine.cursors, "c", kind, type_, engine.cursors.value(kind, "c"), ""), text)
        for kind, type_ in dict.fromkeys(engine.cursors.types.values())
        for text in VALUES[kind]
    ]


def test_each_type_of_database_has_one_engine() -> None:
    assert set(ENGINES) == set(get_args(DatabaseType))
    schemes = [scheme for engine in ENGINES.values() for scheme in engine.facts.schemes]
    assert list(BY_SCHEME) == schemes
    assert [engine for engine in ENGINES.values() if not engine.facts.schemes] == [BY_URL]


@with_urls
def test_a_url_is_read_back(engine: Engine) -> None:
    facts = engine.facts
    for scheme in facts.schemes:
        rest = facts.example.partition(":")[2]
        for written in (f"{scheme}:{rest}", f"jdbc:{scheme}:{rest}"):
            assert parse_url(written) == parse_url(facts.example)
    found = parse_url(facts.example)
    assert found.engine is engine
    assert found.port == facts.port
    assert parse_url(facts.example.replace(f":{facts.port}/", "/")) == found
    read = input_of(engine)
    assert (read.database, read.host, read.name) == (facts.database, found.host, found.name)
    assert from_json(JdbcInput, json.loads(json.dumps(to_json(read)))) == read


@with_urls
def test_the_hint_for_a_wrong_url_is_a_url_of_its_engine(engine: Engine) -> None:
    for scheme in engine.facts.schemes:
        with pytest.raises(PydanticCustomError) as raised:
            parse_url(f"{scheme}://")
        (finding,) = (raised.value.context or {})[FINDINGS]
        assert finding.hint == f"write it as `{engine.facts.example}`"


@with_urls
def test_a_url_has_the_parameters_of_its_engine_and_no_others(engine: Engine) -> None:
    facts = engine.facts
    for name in facts.parameters:
        value = {"sslmode": facts.tls_modes[-1], "connect_timeout": "5"}.get(name, "x")
        assert parse_url(f"{facts.example}?{name}={value}").parameters == {name: value}
    for mode in facts.tls_modes if "sslmode" in facts.parameters else ():
        assert parse_url(f"{facts.example}?sslmode={mode}").parameters == {"sslmode": mode}
    assert set(facts.tls_modes) <= set(TLS_MODES)
    for mode in {*TLS_MODES, "on"} - set(facts.tls_modes):
        assert "sslmode" in refusal_of(f"{facts.example}?sslmode={mode}")
    assert "which lakeload does not know" in refusal_of(f"{facts.example}?colour=red")
    assert "is a secret" in refusal_of(f"{facts.example}?password=hunter2")
    if "://" in facts.example:
        password = facts.example.replace("://", "://loader:hunter2@")
        assert "carries a password" in refusal_of(password)


@engines
def test_its_facts_say_which_optional_methods_it_has(engine: Engine) -> None:
    def has(name: str) -> bool:
        return getattr(type(engine), name) is not getattr(Engine, name)

    assert has("xmin_window") == engine.facts.has_xmin
    assert has("grants") == bool(engine.facts.grants)
    assert has("catalog") != engine.facts.by_driver


@engines
def test_paths_become_absolute(engine: Engine) -> None:
    read = replace(input_of(engine), jars=("a.jar",), parameters={"sslrootcert": "ca.pem"})

    found = engine.resolved(read, lambda path: f"/pipelines/{path}")

    assert found.jars == ("/pipelines/a.jar",)
    assert found.parameters == {"sslrootcert": "/pipelines/ca.pem"}
    system = replace(read, parameters={"sslrootcert": "system"})
    assert engine.resolved(system, lambda path: "").parameters == {"sslrootcert": "system"}


@engines
def test_each_consistency_is_there_or_it_is_said_why_not(engine: Engine) -> None:
    facts = engine.facts
    for consistency in set(get_args(Consistency)) - {"TABLE"}:
        settings = {
            "type": "JDBC", "url": facts.example or OF_A_DRIVER, "user": "loader",
            "jar": "a.jar", "consistency": consistency, "max_connections": 2,
        }  # fmt: skip
        if not facts.users_driver:
            del settings["jar"]
        said = [finding.message for finding in JDBC.findings(settings, [])]
        needs = facts.consistencies.get(consistency)
        if needs is None:
            assert any("consistency" in message for message in said)
            assert consistency in facts.no_consistency or facts.by_driver
            continue
        assert consistency not in facts.no_consistency
        few = f"`consistency: {consistency}` needs {needs.connections} connections: {needs.roles}"
        assert said == ([few] if needs.connections > 2 else [])
        read = replace(input_of(engine), consistency=consistency)
        assert JDBC.facts(read).warnings == (needs.warning,)


@engines
def test_someone_reads_it_whatever_the_choice_or_it_is_said_why_not(engine: Engine) -> None:
    facts, choices = engine.facts, get_args(ReaderChoice)
    refused = "DIRECT" if facts.by_driver else "JVM" if facts.direct is None else None
    for choice in choices:
        if choice != refused:
            engine.check_reader(choice)
            continue
        with pytest.raises(InvalidInput) as raised:
            engine.check_reader(choice)
        assert raised.value.hint == "leave `spark.reader` out"
    assert bool(engine.only_spark("AUTO")) is facts.by_driver
    assert bool(engine.only_spark("JVM")) is (facts.by_driver or facts.direct is not None)
    assert not facts.jar_set or {facts.jar_set} <= {*SETS} & {*JarSet}
    needed = JDBC.facts(input_of(engine)).jar_sets
    assert needed == ({facts.jar_set} if facts.jar_set and facts.by_driver else set())


@engines
def test_spark_reads_where_the_direct_reader_is_not_installed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, direct = engine.facts, engine.facts.direct
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    if direct is None:
        assert bool(engine.only_spark("AUTO")) is facts.by_driver
        return
    assert engine.only_spark("AUTO") == f"the package `{direct.package}` is not installed"
    with pytest.raises(MachineNotReady, match=direct.package):
        engine.check_reader("DIRECT")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == direct.module or None)
    assert engine.only_spark("AUTO") == ""
    engine.check_reader("DIRECT")


@engines
def test_a_literal_of_a_cursor_writes_its_value(engine: Engine) -> None:
    assert engine.cursors.types
    for cursor, text in cursors(engine):
        found = WRITTEN.search(cursor.literal(text))
        assert found is not None
        written = found["text"] if found["text"] is not None else found["number"]
        if found["hex"] is not None:
            assert bytes.fromhex(found["hex"]).decode() == text
        else:
            written = written.replace("''", "'")
            if cursor.literal(text).lstrip().startswith("E'"):
                # A backslash is one of two, where the literal says so.
                assert "\\" not in written.replace("\\\\", "")
                written = written.replace("\\\\", "\\")
            assert written == text


@engines
def test_text_that_is_no_value_of_its_kind_becomes_no_sql(engine: Engine) -> None:
    for cursor, _ in cursors(engine):
        if cursor.kind != "TEXT":
            with pytest.raises(ValueError, match="is not"):
                cursor.between("1 OR 1=1", None)


@engines
def test_the_statements_of_a_cursor_are_one_each(engine: Engine) -> None:
    for cursor, text in cursors(engine):
        sql = engine.cursors
        statements = (
            sql.greatest(cursor, "t", text),
            sql.bound(cursor, "t", text, 5),
            sql.unusable(cursor, (), " FROM t"),
            f"SELECT {sql.digest([])} FROM t WHERE {cursor.between(text, text)}",
        )
        for statement in statements:
            # No quote of a value, and no bracket, is left open.
            assert statement.count("'") % 2 == 0
            without = re.sub(r"'(?:[^'\\]|''|\\.)*'", "", statement)
            assert without.count("(") == without.count(")")
            assert ";" not in without


@pytest.mark.parametrize(
    "engine", [one for one in ENGINES.values() if one.facts.grants],
    ids=[name for name, one in ENGINES.items() if one.facts.grants],
)  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_grants_quote_every_name(engine: Engine, name: str) -> None:
    read = replace(input_of(engine), schema=name, table=name, name=name)

    found = engine.grants(read, name, [read], [name])

    assert engine.facts.grants in list(For)
    assert found.statements
    for statement in found.statements:
        tokens = sqlglot.tokenize(statement, read=engine.facts.grants)
        kinds = [token.token_type.name for token in tokens]
        assert kinds.count("SEMICOLON") == 1
        assert kinds[-1] == "SEMICOLON"
        assert name in [token.text for token in tokens]


@engines
def test_its_catalog_has_what_the_command_line_asks(engine: Engine) -> None:
    if engine.facts.by_driver:
        with pytest.raises(NotImplementedError):
            engine.catalog()
        return
    catalog = engine.catalog()
    asked = [name for name in vars(Catalog) if not name.startswith("_")]
    assert len(asked) > 10
    for name in asked:
        parameters = list(inspect.signature(getattr(Catalog, name)).parameters)[1:]
        inspect.signature(getattr(catalog, name)).bind(*parameters)


@engines
def test_a_connection_that_is_lost_is_tried_again(engine: Engine) -> None:
    lost = engine.failure("reading the source", "08006", "gone")
    wrong = engine.failure("reading the source", "42601", "syntax error")

    assert isinstance(lost, LoadFailed)
    assert (lost.retryable, wrong.retryable) == (True, False)
    assert lost.message.startswith("reading the source: ")
    assert "syntax error (SQLSTATE 42601)" in wrong.message
    assert lost.hint
    assert wrong.hint


@engines
def test_lineage_names_the_table(engine: Engine) -> None:
    found = dataset_of_table(input_of(engine))

    if engine is BY_URL:
        assert found is None
        return
    assert found is not None
    assert found.namespace.startswith(f"{engine.facts.lineage}://")
    assert found.name.endswith("sales.orders")


@engines
def test_a_page_names_it(engine: Engine) -> None:
    pages = (Path(__file__).parents[4] / "docs").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)

    for scheme in engine.facts.schemes or ("jdbc",):
        assert f"{scheme}:" in text
    if engine.facts.schemes:
        assert all(name in text for name in engine.facts.names)
