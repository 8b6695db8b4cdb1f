"""The questions of `lakeload init`: flags, terminals, and neither."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.config.model import Finding
from lakeload.documents.load import load_pipeline
from lakeload.init.documents import Answers
from lakeload.init.interview import (
    QUESTIONS,
    Question,
    interview,
)
from lakeload.sources.files.settings import named_format, table_of
from lakeload_jobs.contract.errors import InvalidInput
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


def test_init_on_a_terminal_prompts(tmp_path: Path, forked_python: str) -> None:
    answers = ["my-data-lake", "us-east-1", "", "", "", "si", "y", "", "data/o.csv", "", "", ""]

    code, screen = at_a_terminal(["init", "lake"], answers, tmp_path, forked_python)

    assert code == 0, screen
    assert "S3 bucket: " in screen
    assert "Register the tables in AWS Glue, for Athena [YES/NO] (NO): " in screen
    assert "`si` is not a choice" in screen
    assert "First part of Glue database names (supaflow): " in screen
    document = load_pipeline(tmp_path / "lake" / "pipeline.yml", {})
    assert document.destination.model.glue_database_prefix == "supaflow"


def test_init_prompt_misspelled_region_is_repeated(tmp_path: Path, forked_python: str) -> None:
    answers = ["my-data-lake", "us-esat-1", "us-east-1", "\x04"]

    code, screen = at_a_terminal(["init", "lake"], answers, tmp_path, forked_python)

    assert code == 2, screen
    assert "did you mean `us-east-1`?" in screen
    assert screen.index("did you mean") < screen.index("Path below the bucket")


def test_init_prompt_region_of_another_store_is_accepted() -> None:
    flags = {**REQUIRED, "region": "us-esat-1"}
    with pytest.raises(InvalidInput, match="`--region`"):
        interview(flags, {"name": "n"}, None)
    store = {**flags, "endpoint_url": "http://minio:9000"}
    assert interview(store, {"name": "n"}, None).region == "us-esat-1"


def test_init_no_input_prompts_nothing(tmp_path: Path, forked_python: str) -> None:
    code, screen = at_a_terminal(["init", "--no-input"], [], tmp_path, forked_python)

    assert code == 2
    assert "`--bucket`" in screen


def test_init_input_that_ends_early_writes_nothing(tmp_path: Path, forked_python: str) -> None:
    code, screen = at_a_terminal(["init"], ["my-data-lake", "\x04"], tmp_path, forked_python)

    assert code == 2, screen
    assert "the input ended at the question for `--region`" in " ".join(screen.split())
    assert list(tmp_path.iterdir()) == []


def at_a_terminal(
    arguments: list[str], answers: list[str], folder: Path, python: str
) -> tuple[int, str]:
    """Run lakeload at a terminal of 80 columns, answer its questions, return code and screen."""
    ours, theirs = pty.openpty()
    command = [python, "-m", "lakeload", *arguments]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen, left, deadline = "", list(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            screen += os.read(ours, 65536).decode() if ready else ""
        except OSError:
            break
        if left and screen.endswith(": "):
            answer = left.pop(0)
            screen += "\n"
            os.write(ours, answer.encode() if answer == "\x04" else f"{answer}\n".encode())
    os.close(ours)
    return process.wait(timeout=30), re.sub(r"\x1b\[[0-9;]*m", "", screen)


@pytest.mark.parametrize(
    ("path", "file_format", "table"),
    [
        ("data/orders/*.csv", "CSV", "orders"),
        ("data/customers-eu.tsv.gz", "CSV", "customers-eu"),
        ("s3://raw/2026/*/*.json.gz", "JSON", "raw"),
        ("x/clicks.v2.ndjson.zst", "NDJSON", "clicks"),
        ("lake/page views/", None, "page views"),
        ("*.parquet", "PARQUET", "table"),
        ("Größe/[a-c]?.avro", "AVRO", "Größe"),
    ],
)
def test_init_path_determines_format_and_table(
    path: str, file_format: str | None, table: str
) -> None:
    assert (named_format(path), table_of(path)) == (file_format, table)
