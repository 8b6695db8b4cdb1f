"""Secrets are references; a value that stands in a document all the same is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.config.credentials import Credentials
from lakeload.config.secret_names import looks_secret, masked, shown
from lakeload.documents.cross import remote_findings
from lakeload.documents.destination import Destination
from lakeload.documents.load import check, load_destination
from lakeload.documents.spec import destination_spec
from lakeload.ui.problems import problems_json, problems_text
from lakeload_jobs.contract.secrets import SecretReference
from tests.unit.documents.documents import DESTINATION, PIPELINE, TABLES, problems_of

CANARY = "canary-7d1f"
ROLE = "role_arn: arn:aws:iam::123456789012:role/R"


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("{env: MY_ID}", SecretReference("env", "MY_ID")),
        ("${MY_ID}", SecretReference("env", "MY_ID")),
        ('"${MY_ID}"', SecretReference("env", "MY_ID")),
        ("{aws_secret: lake/id}", SecretReference("aws_secret", "lake/id")),
        ("{aws_parameter: /lake/id}", SecretReference("aws_parameter", "/lake/id")),
        ("{file: /run/secrets/id}", SecretReference("file", "/run/secrets/id")),
    ],
)
def test_a_reference_reaches_the_spec_as_it_is(
    written: str, reference: SecretReference, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {written}\n")

    spec = destination_spec(load_destination(path, {"MY_ID": CANARY}))

    assert spec.credentials.external_id == reference
    assert CANARY not in repr(spec)


def test_a_secret_file_is_relative_to_the_document(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {{file: s/id}}\n")

    reference = destination_spec(load_destination(path, {})).credentials.external_id

    assert reference == SecretReference("file", str(tmp_path / "s" / "id"))


@pytest.mark.parametrize(
    "text",
    [
        f"{DESTINATION}credentials: {{secret_access_key: {CANARY}}}\n",
        f"{DESTINATION}credentials: {{secret_access_key: {{env: '{CANARY}'}}}}\n",
        f"{DESTINATION}credentials: {{secret_access_key: [{CANARY}, {CANARY}]}}\n",
        f"{DESTINATION}credentials: {{secret_access_key: {{x: {{y: [{CANARY}]}}}}}}\n",
        f"{DESTINATION}credentials: {{secret_access_key: '${{A:-{CANARY}}}'}}\n",
        f"{DESTINATION}credentials: {{secret_access_key: |\n  {CANARY}\n  {CANARY}\n  , x: 1}}",
        f"{DESTINATION}credentials:\n  secret_access_key: >-\n    {CANARY}\n    and {CANARY}\n",
        f"{DESTINATION}credentials: {{typo: {CANARY}}}\n",
        f"{DESTINATION}credentials: {{profile: p, typo: {CANARY}}}\n",
        f"{DESTINATION}credentials: {{typo: {{a: {CANARY}, b: {{c: [{CANARY}]}}}}}}\n",
        f"{DESTINATION}credentials:\n  session_token: {CANARY}\n  session_token: {CANARY}\n",
        f"{DESTINATION}secret_access_key: {CANARY}\n",
        f"{DESTINATION}my_password: {CANARY}\n",
        f"{DESTINATION}iceberg: {{catalog: {{credential: {CANARY}}}}}\n",
        f"{DESTINATION}iceberg: {{catalog: {{headers: {{x-token: {CANARY}}}}}}}\nregin: 1\n",
        f"{DESTINATION}iceberg: {{catalog: {{headers: {{x-key: {CANARY}}}}}}}\nregin: 1\n",
        f"{DESTINATION}iceberg: {{catalog: {{headers: {{x-key: {{v: {{w: {CANARY}}}}}}}}}}}\n",
        f"{DESTINATION}iceberg: {{catalog: {{headers: [{{x-key: {CANARY}}}]}}}}\n",
        f"{DESTINATION}iceberg:\n  catalog:\n    headers:\n      x-key: {CANARY}: x\n",
        f"{DESTINATION}endpoint_url: https://me:{CANARY}@host\n",
        f"{DESTINATION}endpoint_url: https://{CANARY}@host/path\n",
        f"{DESTINATION}prefix: s3://me:{CANARY}@bucket\n",
        f"{DESTINATION}x: https://me:{CANARY}@host\n",
        f"{DESTINATION}credentials:\n  secret_access_key: {CANARY}: x\n",
        f"{DESTINATION}credentials:\n  secret_access_key: '{CANARY}\n  more: x\n",
        f"{DESTINATION}credentials:\n  secret_access_key: {CANARY}\n   {CANARY}: x: y\n",
        f"{DESTINATION}credentials: {{session_token: {CANARY}, secret_access_key: {CANARY}]\n",
        f"{DESTINATION}credentials:\n  secret_access_key: {CANARY}\n\tx: 1\n",
        f"{DESTINATION}credentials: &c\n  secret_access_key: {CANARY}\niceberg: *c\n",
        f"{PIPELINE}{TABLES}spark: {{conf: {{spark.my.secret: {CANARY}}}}}\n",
        f"{PIPELINE}{TABLES}spark: {{conf: {{spark.url: 'jdbc://u:{CANARY}@h'}}}}\n",
        f"{PIPELINE.replace('}', ', url: x, password: ' + CANARY + '}')}{TABLES}",
    ],
)
def test_a_literal_secret_is_an_error_that_does_not_show_it(text: str, tmp_path: Path) -> None:
    found = problems_of(tmp_path, text, A="x")

    assert any(problem.severity == "error" for problem in found)
    assert CANARY in text
    assert CANARY not in problems_text(found, 80).plain
    assert CANARY not in str(problems_json(found))
    assert CANARY not in repr(found)


def test_an_error_for_a_literal_shows_the_two_lines_to_write(tmp_path: Path) -> None:
    text = f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {CANARY}\n"

    [problem] = problems_of(tmp_path, text)

    assert problem.hint is not None
    assert problem.hint.splitlines()[1:] == ["  external_id:", "    env: LAKELOAD_EXTERNAL_ID"]


@pytest.mark.parametrize("value", [" padded", "padded ", "padded\n", "\tpadded"])
@pytest.mark.parametrize("how", ["{env: ID}", "${ID}", "{file: id}"])
def test_white_space_around_a_secret_is_a_warning_that_does_not_show_it(
    how: str, value: str, tmp_path: Path
) -> None:
    # One final newline of a file is dropped, so a file needs one more to be suspicious.
    (tmp_path / "id").write_text(value + "\n")
    text = f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {how}\n"

    [problem] = problems_of(tmp_path, text, ID=value)

    assert (problem.severity, problem.line) == ("warning", 6)
    assert "padded" not in repr(problem)


def test_missing_secret_is_not_a_problem_of_the_file(tmp_path: Path) -> None:
    text = f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {{file: missing}}\n"

    assert problems_of(tmp_path, text) == []


def test_secret_file_with_a_carriage_return_is_reported(tmp_path: Path) -> None:
    (tmp_path / "id").write_bytes(b"id\r\n")
    text = f"{DESTINATION}credentials:\n  {ROLE}\n  external_id: {{file: id}}\n"

    assert [problem.code for problem in problems_of(tmp_path, text)] == ["white-space"]


def test_the_settings_around_a_secret_are_shown(tmp_path: Path) -> None:
    text = f"{DESTINATION}credentials: {{profle: x, secret_access_key: {CANARY}}}\n"
    path = tmp_path / "document.yaml"
    path.write_text(text)

    shown_lines = problems_text(check([path], {}), 80).plain

    assert "credentials: {profle: ****, secret_access_key: ****}" in shown_lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("secret_access_key", True),
        ("Password", True),
        ("db_pwd", True),
        ("apiKey", True),
        ("x-auth-token", True),
        ("clientSecret", True),
        ("region", False),
        ("primary_key", False),
        ("kms_key_id", False),
        ("credentials", False),
        ("partition_strategy", False),
    ],
)
def test_secret_names_are_detected(name: str, expected: bool) -> None:
    assert looks_secret(name) is expected


def test_values_in_messages_are_masked_short_and_printable() -> None:
    assert masked("http://u:p@h AKIAIOSFODNN7EXAMPLE") == "http://****@h ****"
    assert masked("jdbc:h2:x;PASSWORD=a;B=c") == "jdbc:h2:x;PASSWORD=****;B=c"
    assert masked("jdbc:oracle:thin:scott/tiger@//h") == "jdbc:oracle:****@//h"
    assert shown("a\x1b[31m\n") == "a\\x1b[31m\\n"
    assert len(shown("x" * 500)) == 60


def test_a_master_given_as_a_flag_counts_the_secrets_of_the_source() -> None:
    reader = Credentials(
        role_arn="arn:aws:iam::123456789012:role/Reader",
        external_id={"env": "READER_ID"},  # type: ignore[arg-type]
    )
    given = {"spark": {"master": "spark://h:7077"}, "source": {"credentials": reader}}

    [finding] = remote_findings(given, Destination(version=1, bucket="b-1", region="us-east-1"))

    assert "`source.credentials.external_id: {env: READER_ID}`" in finding.message
