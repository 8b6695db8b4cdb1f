"""The questions of `lakeload init`, and the flags that answer them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.config.model import Finding
from lakeload.init.documents import Answers
from lakeload.init.interview import (
    QUESTIONS,
    Question,
    interview,
)
from lakeload.sources.files.settings import table_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.sources.files.formats.registry import named_format
from tests.unit.init.choices import (
    REQUIRED,
    ROLE,
)


def test_the_glue_prefix_is_supaflow_unless_another_is_given() -> None:
    assert interview({**REQUIRED, "glue": "YES"}, {"name": "n"}, None).glue_prefix == "supaflow"
    given = interview({**REQUIRED, "glue": "YES", "glue_prefix": "x"}, {"name": "n"}, None)
    assert given.glue_prefix == "x"
    assert interview(REQUIRED, {"name": "n"}, None).glue_prefix == ""


def test_without_a_terminal_all_missing_flags_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        interview({"bucket": "my-data-lake", "role_arn": None}, {"name": "n"}, None)
    assert caught.value.message.startswith("`--region`, `--path` are missing")

    flags = {"table_format": "ICEBERG", "catalog": "SNOWFLAKE_OPEN_CATALOG", "credentials": "ROLE"}
    with pytest.raises(InvalidInput) as caught:
        interview({**flags, "path": "data/"}, {"name": "n"}, None)
    named = "`--bucket`, `--region`, `--role-arn`, `--catalog-uri`, `--catalog-name`, `--source`"
    assert caught.value.message.startswith(f"{named} are missing")


@pytest.mark.parametrize(
    ("choices", "flag"),
    [
        ({"catalog": "REST"}, "--catalog"),
        ({"catalog_uri": "https://h"}, "--catalog-uri"),
        ({"glue_prefix": "x"}, "--glue-prefix"),
        ({"credentials": "KEYS", "role_arn": ROLE}, "--role-arn"),
        ({"table_format": "ICEBERG", "warehouse": "w"}, "--warehouse"),
        ({"table_format": "ICEBERG", "glue": "YES"}, "--glue"),
        ({"mode": "UPSERT"}, "--mode"),
        ({"table_format": "ICEBERG", "primary_key": "id"}, "--primary-key"),
    ],
)
def test_a_flag_without_effect_is_refused(choices: dict[str, str], flag: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        interview({**REQUIRED, **choices}, {"name": "n"}, None)

    assert caught.value.message.startswith(f"`{flag}` has no effect with `--credentials ")


def test_flag_without_effect_names_no_answer_that_is_empty() -> None:
    with pytest.raises(InvalidInput) as caught:
        interview({"local": "YES", "path": "a.csv", "mode": "APPEND"}, {"name": "n"}, None)

    said = "`--mode` has no effect with `--local --table-format PARQUET`"
    assert caught.value.message == said


def test_every_question_has_a_flag_of_its_own() -> None:
    text = CliRunner().invoke(app, ["init", "--help"], env={"COLUMNS": "200"}).stdout

    for question in QUESTIONS:
        assert f"{question.flag} " in text.replace("/", " "), question.flag
    assert {question.name for question in QUESTIONS} == set(Answers.__dataclass_fields__)


def test_init_on_a_terminal_prompts_once_and_repeats_invalid_answers() -> None:
    asked: list[tuple[str, str | None]] = []
    given = ["lake_1", "lake-1", "", "rest", "https://h", "", "", "x.avro", "", "T", "u"]
    answers = iter([*given, "id", ""])

    def ask(
        question: Question, choices: tuple[str, ...], default: str | None, wrong: Finding | None
    ) -> str:
        asked.append((question.name, wrong.message if wrong else None))
        return next(answers) or default or ""

    found = interview(
        {"region": "eu-west-1", "role_arn": ROLE, "table_format": "ICEBERG"}, {"name": "n"}, ask
    )

    assert asked == [
        ("bucket", None),
        ("bucket", "`lake_1` is not a bucket name"),
        ("prefix", None),
        ("catalog", None),
        ("catalog_uri", None),
        ("catalog_auth", None),
        ("warehouse", None),
        ("path", None),
        ("source", None),
        ("table", None),
        ("mode", None),
        ("primary_key", None),
        ("name", None),
    ]
    assert (found.source, found.mode, found.primary_key) == ("AVRO", "UPSERT", "id")
    assert (found.catalog, found.catalog_auth, found.table, found.name) == (
        *("REST", "CREDENTIAL"),
        *("T", "n"),
    )


def test_init_prompt_region_of_another_store_is_accepted() -> None:
    flags = {**REQUIRED, "region": "us-esat-1"}
    with pytest.raises(InvalidInput, match="`--region`"):
        interview(flags, {"name": "n"}, None)
    store = {**flags, "endpoint_url": "http://minio:9000"}
    assert interview(store, {"name": "n"}, None).region == "us-esat-1"


@pytest.mark.parametrize(
    ("path", "file_format", "table"),
    [
        ("data/orders/*.csv", "CSV", "orders"),
        ("data/customers-eu.tsv.gz", "CSV", "customers-eu"),
        ("s3://raw/2026/*/*.json.gz", "JSON", "raw"),
        ("x/clicks.v2.ndjson.zst", "NDJSON", "clicks"),
        ("s3://raw/orders.csv.zip", "CSV", "orders"),
        ("lake/page views/", None, "page views"),
        ("*.parquet", "PARQUET", "table"),
        ("Größe/[a-c]?.avro", "AVRO", "Größe"),
    ],
)
def test_init_path_determines_format_and_table(
    path: str, file_format: str | None, table: str
) -> None:
    assert (named_format(path), table_of(path)) == (file_format, table)
