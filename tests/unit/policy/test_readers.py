"""Files and scripts for readers of Iceberg tables: what they hold, and that they hold no secret."""

from __future__ import annotations

import ast
import builtins
import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest

from lakeload.policy.recipes import SPARK_PACKAGES, Engine, readers, recipes
from lakeload.policy.secret_variables import credential, headers, token
from lakeload.policy.templates import properties_value
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DELETE_LIMIT, CatalogSpec, TableSpec
from lakeload_jobs.formats.iceberg.rules import facts as iceberg_facts
from tests.unit.policy.iceberg_cases import AUDITED, ICEBERG_CASES
from tests.unit.policy.recipe_cases import (
    ANSWERS,
    HOURS,
    ICEBERG,
    ONE,
    ORDERS,
    answer,
    with_catalog,
)

SCRIPTS = [name for name in ICEBERG_CASES if name.endswith(".py.txt")]
FILES = [name for name in ICEBERG_CASES if name.startswith(("spark-", "trino-"))]


@pytest.mark.parametrize("name", SCRIPTS)
def test_reader_script_is_valid_python_without_undefined_names(name: str) -> None:
    tree = ast.parse(answer(ICEBERG_CASES[name]))
    known = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert used <= known


@pytest.mark.parametrize("name", FILES)
def test_a_properties_file_names_each_key_once_and_gives_it_a_value(name: str) -> None:
    (shown,) = [one for one in ICEBERG_CASES[name].snippets if one.language == "properties"]
    pairs = [line.partition("=") for line in shown.text.splitlines()]
    keys = [key for key, _, _ in pairs]
    assert len(keys) == len(set(keys))
    assert all(equals and value for _, equals, value in pairs)


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(".txt")])
def test_reader_file_needs_only_a_destination(name: str) -> None:
    for line in answer(ICEBERG_CASES[name]).splitlines():
        assert line.startswith("# ") or "=" in line


def test_spark_reads_with_the_jars_that_loads_use() -> None:
    pinned = tomllib.loads((files("lakeload.machine") / "jars.toml").read_text(encoding="utf-8"))
    assert set(SPARK_PACKAGES) == set(pinned["4.1"]["iceberg"])


def test_a_backslash_stays_one_in_a_properties_file() -> None:
    assert properties_value("b\\c é") == "b\\\\c é"


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("spark", "`orders` VERSION AS OF 'audit'"),
        ("trino", "\"orders\" FOR VERSION AS OF 'audit'"),
        ("pyiceberg", 'table.scan().use_ref("audit")'),
    ],
)
def test_engines_that_can_name_a_branch_read_the_one_that_is_loaded(
    engine: Engine, words: str
) -> None:
    shown = recipes(AUDITED, engine, ONE)
    assert words in "\n".join(one.text for one in shown)
    assert not [one.title for one in shown if "at a time" in one.title]


def titles(table: TableSpec) -> list[str]:
    """Return what can be asked of a table in Athena, in short."""
    shown = recipes(ICEBERG, "athena", replace(ONE, tables=(table,)))
    return [one.title.partition(": ")[2] for one in shown if one.text]


def test_the_newest_version_is_asked_for_only_where_there_are_older_ones() -> None:
    newest = "the newest version of each row"
    assert newest in titles(ORDERS)
    assert newest not in titles(replace(ORDERS, mode="UPSERT"))
    assert newest not in titles(replace(ORDERS, mode="OVERWRITE"))


def test_marked_rows_are_left_out_where_the_table_keeps_them() -> None:
    alive = "the rows that are not deleted"
    upserted = replace(ORDERS, mode="UPSERT", deleted_when="gone")
    assert alive in titles(upserted)
    assert alive not in titles(replace(upserted, deletes="DELETE"))
    assert alive not in titles(replace(upserted, deleted_when=None))
    compared = replace(upserted, deleted_when=None, max_deleted=DELETE_LIMIT)
    assert alive in titles(compared)
    assert alive not in titles(replace(compared, deletes="DELETE"))


def test_a_secret_is_named_by_the_variable_it_is_in_or_will_be_in() -> None:
    own = CatalogSpec("REST", credential=SecretReference("env", "PAIR"))
    assert credential(own, "r") is not None
    assert (credential(own, "r").name, credential(own, "r").reading) == ("PAIR", "")  # type: ignore[union-attr]
    odd = replace(own, credential=None, token=SecretReference("env", "my-token"))
    held = token(odd, "r")
    assert held is not None
    assert (held.name, held.reading) == ("LAKE_TOKEN", 'export LAKE_TOKEN="$(printenv my-token)"')
    one = replace(own, headers={"X-My Tenant": SecretReference("file", "/run/my secret")})
    (header,) = headers(one, "r").values()
    assert header.name == "LAKE_HEADER_X_MY_TENANT"
    assert header.reading.endswith("\"$(cat '/run/my secret')\"")


def test_two_halves_become_one_credential() -> None:
    catalog = CatalogSpec(
        "SNOWFLAKE_OPEN_CATALOG",
        client_id=SecretReference("env", "ID"),
        client_secret=SecretReference("aws_parameter", "/s"),
    )
    held = credential(catalog, "eu-west-1")
    assert held is not None
    assert held.reading.startswith('export LAKE_CREDENTIAL="${ID:?}:$(aws ssm get-parameter')


@pytest.mark.parametrize("engine", ["spark", "trino", "pyiceberg"])
def test_no_file_holds_more_of_a_secret_than_where_it_is(engine: Engine) -> None:
    catalog = CatalogSpec("REST", uri="https://c", token=SecretReference("env", "MY_TOKEN"))
    shown = "\n".join(one.text for one in recipes(with_catalog(catalog), engine, ONE))
    references = {"spark": "env:MY_TOKEN", "trino": "${ENV:MY_TOKEN}"}
    assert shown.count("MY_TOKEN") == 1
    assert references.get(engine, 'os.environ["MY_TOKEN"]') in shown


def test_page_lists_the_snapshot_summary_keys_of_a_job() -> None:
    page = (ANSWERS.parents[2] / "docs" / "query.md").read_text(encoding="utf-8")
    keys = [value for name, value in vars(iceberg_facts).items() if name.startswith("SUMMARY_")]
    assert len(keys) > 5
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_the_engines_that_can_read_follow_from_format_and_catalog() -> None:
    nessie = with_catalog(CatalogSpec("NESSIE", uri="https://x", api="NATIVE"))
    everything = ("athena", "spark", "duckdb", "pyiceberg", "snowflake", "trino")
    assert readers(ICEBERG, ONE) == everything
    assert readers(nessie, ONE) == ("spark", "duckdb", "pyiceberg", "trino")
    assert readers(HOURS, ONE) == ("athena", "duckdb")
