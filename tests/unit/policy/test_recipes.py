"""Grants, statements and queries as they are written, and that engines can read them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import botocore.session
import duckdb
import pytest
import sqlglot
from botocore.validate import ParamValidator
from sqlglot import exp

from lakeload.policy.recipes import Engine, RecipeRequest, declared_columns, readers, recipes
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    ColumnsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
    ParquetSpec,
    SigV4Spec,
)
from tests.unit.policy.iceberg_cases import CASES
from tests.unit.policy.recipe_cases import (
    ANSWERS,
    HOURS,
    ICEBERG,
    NOW,
    ORDERS,
    PLAIN,
    VISITS,
    answer,
    with_catalog,
)

SQL = [name for name, case in CASES.items() if case.dialect]
GRANTS = [name for name in CASES if name.startswith("lake-formation")]

# What sqlglot keeps as text, by how it begins; anything else it has to understand.
_UNPARSED = re.compile(
    r"(CREATE (EXTERNAL VOLUME|CATALOG INTEGRATION|OR REPLACE SECRET)|DESC |ALTER ICEBERG TABLE "
    r"\S+ REFRESH$|INSTALL |LOAD )"
)


@pytest.mark.parametrize("name", CASES)
def test_recipe_equals_its_case_file(name: str) -> None:
    assert answer(CASES[name]) == (ANSWERS / name).read_text(encoding="utf-8")


def test_every_case_file_is_used() -> None:
    assert sorted(path.name for path in ANSWERS.iterdir()) == sorted(CASES)


@pytest.mark.parametrize("name", SQL)
def test_the_statements_are_valid_in_their_dialect(name: str) -> None:
    dialect = CASES[name].dialect
    statements = [
        statement
        for snippet in CASES[name].snippets
        if snippet.language == "sql"
        for statement in split(snippet.text, dialect)
    ]
    assert statements or not CASES[name].asked.tables
    for statement in statements:
        if _UNPARSED.match(statement):
            assert balanced(statement, dialect), statement
            continue
        (parsed,) = sqlglot.parse(statement, dialect=dialect)
        assert parsed is not None
        assert not isinstance(parsed, exp.Command), statement


def split(text: str, dialect: str) -> list[str]:
    """Return the statements without their semicolons."""
    tokens = sqlglot.tokenize(text, dialect=dialect)
    ends = [token.end for token in tokens if token.token_type == sqlglot.TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=False)]


def balanced(statement: str, dialect: str) -> bool:
    """Tell whether strings end and parentheses match."""
    depth = 0
    for token in sqlglot.tokenize(statement, dialect=dialect):
        depth += (token.token_type == sqlglot.TokenType.L_PAREN) - (
            token.token_type == sqlglot.TokenType.R_PAREN
        )
        assert depth >= 0, statement
    return depth == 0


@pytest.mark.parametrize("name", [name for name in GRANTS if name.endswith(".json")])
def test_grants_are_requests_that_the_api_takes(name: str) -> None:
    model = botocore.session.get_session().get_service_model("lakeformation")
    requests = json.loads(answer(CASES[name]))
    assert "BatchGrantPermissions" in requests
    for operation, parameters in requests.items():
        shape = model.operation_model(operation).input_shape
        assert shape is not None
        report = ParamValidator().validate(parameters, shape)
        assert not report.has_errors(), report.generate_report()
        for entry in parameters.get("Entries", []):
            known = model.shape_for("Permission").metadata["enum"]
            assert set(entry["Permissions"]) <= set(known)


@pytest.mark.parametrize("name", [name for name in GRANTS if name.endswith(".sh")])
def test_commands_have_the_options_of_the_api(name: str) -> None:
    model = botocore.session.get_session().get_service_model("lakeformation")
    for snippet in CASES[name].snippets:
        program, service, action, *options = shlex.split(snippet.text)
        assert (program, service) == ("aws", "lakeformation")
        shape = model.operation_model(pascal(action)).input_shape
        assert shape is not None
        names = {pascal(word[2:]) for word in options if word.startswith("--")} - {"Region"}
        assert names <= set(shape.members)
        assert set(shape.required_members) <= names


def pascal(words: str) -> str:
    """`grant-permissions` → `GrantPermissions`."""
    return "".join(word.capitalize() for word in words.split("-"))


REFUSED: dict[str, tuple[DestinationSpec, Engine, RecipeRequest, str]] = {
    "athena without tables": (HOURS, "athena", RecipeRequest(NOW), "queries are about tables"),
    "athena and a catalog it does not read": (
        with_catalog(CatalogSpec("REST", uri="https://x", sigv4=SigV4Spec("execute-api"))),
        "athena",
        RecipeRequest(NOW, tables=(ORDERS,)),
        "reads Iceberg tables from AWS Glue, and the catalog of this destination is `REST`",
    ),
    "duckdb and files without tables": (
        PLAIN,
        "duckdb",
        RecipeRequest(NOW),
        "queries are about tables",
    ),
    "spark and Parquet": (
        PLAIN,
        "spark",
        RecipeRequest(NOW),
        "needs: the destination's `table_format` is",
    ),
    "pyiceberg and Parquet": (
        PLAIN,
        "pyiceberg",
        RecipeRequest(NOW),
        "`table_format` is `PARQUET`",
    ),
    "trino and Parquet": (PLAIN, "trino", RecipeRequest(NOW), "`table_format` is `PARQUET`"),
    "snowflake and Parquet": (
        PLAIN,
        "snowflake",
        RecipeRequest(NOW),
        "`table_format` is `PARQUET`",
    ),
    "snowflake and Nessie's own protocol": (
        with_catalog(CatalogSpec("NESSIE", uri="https://x", api="NATIVE")),
        "snowflake",
        RecipeRequest(NOW),
        "Iceberg's REST protocol",
    ),
    "snowflake and a catalog without a login": (
        with_catalog(CatalogSpec("REST", uri="https://x")),
        "snowflake",
        RecipeRequest(NOW),
        "without a login",
    ),
    "snowflake and a service it does not sign for": (
        with_catalog(CatalogSpec("REST", uri="https://x", sigv4=SigV4Spec("s3tables"))),
        "snowflake",
        RecipeRequest(NOW),
        "`signing_name` is `s3tables`",
    ),
    "snowflake and a bucket with a dot": (
        replace(ICEBERG, bucket="lake.example.com"),
        "snowflake",
        RecipeRequest(NOW),
        "`lake.example.com` has a dot",
    ),
    "grants without Glue": (
        PLAIN,
        "lake-formation",
        RecipeRequest(NOW),
        "no table of this destination",
    ),
    "grants for readers of unknown databases": (
        HOURS,
        "lake-formation",
        RecipeRequest(NOW, read_only=True),
        "given for each database",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_recipe_unsupported_combination_is_rejected_with_a_hint(name: str) -> None:
    destination, engine, asked, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=re.escape(message)) as refused:
        recipes(destination, engine, asked)
    assert refused.value.hint


def test_a_signed_rest_catalog_of_glue_is_read_as_glue_is() -> None:
    signed = with_catalog(CatalogSpec("REST", uri="https://x", sigv4=SigV4Spec("glue")))
    asked = RecipeRequest(NOW, tables=(ORDERS,))
    assert recipes(signed, "athena", asked) == recipes(ICEBERG, "athena", asked)


def test_a_day_is_one_partition_of_a_table_by_day() -> None:
    by_day = replace(PLAIN, parquet=ParquetSpec("DAY", update_glue_catalog=True))
    *_, last = recipes(by_day, "athena", RecipeRequest(NOW, tables=(ORDERS,)))
    assert last.text.endswith("WHERE lakeload_partition = '2026/11/21';")


def test_grants_have_the_requested_principal() -> None:
    users = ("arn:aws:iam::123456789012:user/a", "arn:aws:iam::123456789012:user/b")
    (shown,) = recipes(HOURS, "lake-formation", RecipeRequest(NOW, principals=users, form="json"))
    entries = json.loads(shown.text)["BatchGrantPermissions"]["Entries"]
    found = [entry["Principal"]["DataLakePrincipalIdentifier"] for entry in entries]
    assert found == [users[0], users[0], users[1], users[1]]


def test_grants_have_names_that_terraform_takes_and_no_two_alike() -> None:
    users = tuple(f"arn:aws:iam::{account}:role/1-a" for account in (111122223333, 444455556666))
    shown = recipes(HOURS, "lake-formation", RecipeRequest(NOW, principals=users, form="terraform"))
    labels = re.findall(r'permissions" "(.*)" \{', "\n".join(snippet.text for snippet in shown))
    assert labels == ["_1_a_location", "_1_a_catalog", "_1_a_location_2", "_1_a_catalog_2"]


def test_a_quote_in_a_prefix_ends_no_string_of_athenas_ddl() -> None:
    quoted = replace(PLAIN, prefix="it's", parquet=ParquetSpec("NONE"))
    _, create, *_ = recipes(quoted, "athena", RecipeRequest(NOW, tables=(ORDERS,)))
    assert r"LOCATION 's3://my-data-lake/it\'s/" in create.text
    (parsed,) = sqlglot.parse(create.text, dialect="hive")
    assert parsed is not None
    location = parsed.find(exp.LocationProperty)
    assert location is not None
    assert location.this.this.startswith("s3://my-data-lake/it's/")


@pytest.mark.parametrize(
    ("region", "provider"),
    [("us-gov-west-1", "S3GOV"), ("cn-north-1", "S3CHINA"), ("eu-west-1", "S3")],
)
def test_volume_arn_has_the_partition_of_its_region(region: str, provider: str) -> None:
    (volume, *_) = recipes(replace(ICEBERG, region=region), "snowflake", RecipeRequest(NOW))
    assert f"STORAGE_PROVIDER = '{provider}'" in volume.text
    assert f"STORAGE_BASE_URL = '{provider.lower()}://my-data-lake/data/" in volume.text


@pytest.mark.parametrize("engine", ["athena", "duckdb", "snowflake"])
def test_recipe_warns_of_loads_into_another_branch(engine: Engine) -> None:
    audited = replace(ICEBERG, iceberg=IcebergSpec(branch="audit"))
    first, *rest = recipes(audited, engine, RecipeRequest(NOW, tables=(ORDERS,)))
    assert "writes into `audit`" in first.commented
    assert tuple(rest) == recipes(ICEBERG, engine, RecipeRequest(NOW, tables=(ORDERS,)))


def test_the_page_shows_queries_as_they_are_written() -> None:
    page = (ANSWERS.parents[2] / "docs" / "query.md").read_text(encoding="utf-8")
    shown = [
        " ".join(statement.split())
        for block in re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        for statement in split(re.sub(r"^--.*\n", "", block, flags=re.MULTILINE), "athena")
    ]
    written = {
        " ".join(snippet.text.rstrip(";").split())
        for case in ("athena-hour.sql", "athena-iceberg.sql", "athena-iceberg-changing.sql")
        for snippet in CASES[case].snippets
    }
    assert len(shown) == 8
    assert set(shown) <= written


def test_render_value_like_a_mark_of_templates_stays_a_value() -> None:
    """`### `, `> ` and `$ ` at the start of a line mean something in templates alone."""
    strange = replace(ORDERS, primary_key=("id\n### title\n> why\n$ command\n% if x",))
    plain = recipes(PLAIN, "duckdb", RecipeRequest(NOW, tables=(ORDERS,)))
    shown = recipes(PLAIN, "duckdb", RecipeRequest(NOW, tables=(strange,)))
    assert [(one.title, one.text, one.commands) for one in shown] == [
        (one.title, one.text, one.commands) for one in plain
    ]
    (newest,) = (one for one in shown if one.title.endswith("the newest version of each row"))
    assert "id\n### title\n> why\n$ command\n% if x" in newest.why


def test_numbers_that_become_timestamps_are_declared_as_such() -> None:
    table = replace(ORDERS, columns=ColumnsSpec(types={"at": "timestamp(ms)"}))

    assert declared_columns(table, (), "NATIVE").types == {"at": "timestamp"}


MANY = tuple(
    replace(table, source=f"{table.source}{number}", table=f"{table.table}{number}")
    for number in range(12)
    for table in (ORDERS, VISITS)
)


def test_of_many_tables_each_has_its_view_and_one_of_each_kind_its_queries() -> None:
    shown = recipes(PLAIN, "duckdb", RecipeRequest(NOW, tables=MANY))
    text = "\n".join(snippet.commented for snippet in shown)

    statements = duckdb.extract_statements(text)
    assert text.count("\n") < 150
    for table in MANY:
        view = f'VIEW "{table.schema}"."{table.table}" AS'
        assert sum(view in statement.query for statement in statements) == 1
    asked = {title.partition(":")[0] for title in (one.title for one in shown) if ": " in title}
    assert asked == {"supaflow_shop.orders0", "supaflow_shop.visits0"}
    assert "supaflow_shop.orders0, supaflow_shop.visits0: for another one" in " ".join(
        one.why for one in shown
    ).replace("\n", " ")


@pytest.mark.parametrize("engine", ["athena", "duckdb", "trino", "spark", "pyiceberg"])
def test_queries_of_many_iceberg_tables_are_those_of_one_of_each_kind(engine: Engine) -> None:
    few, many = (
        "\n".join(
            snippet.commented
            for snippet in recipes(ICEBERG, engine, RecipeRequest(NOW, tables=tables))
        )
        for tables in (MANY[:2], MANY)
    )

    assert "orders0" in few
    assert "orders0" in many
    assert "orders5" not in many
    assert many.count("\n") <= few.count("\n") + 5


def test_athena_is_not_proposed_for_a_store_that_is_not_of_aws() -> None:
    elsewhere = replace(HOURS, endpoints=EndpointsSpec(s3="https://minio.example.com"))
    asked = RecipeRequest(NOW, tables=(ORDERS,))

    assert readers(HOURS, asked) == ("athena", "duckdb")
    assert readers(elsewhere, asked) == ("duckdb",)
