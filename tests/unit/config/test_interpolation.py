"""`${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.config.document import fill
from lakeload.documents.load import load_destination
from tests.unit.documents.documents import DESTINATION, messages, problems_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "one"),
        ("x-${A}-${B}", "x-one-two"),
        ("${A:-other}", "one"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("$${A}", "${A}"),
        ("$A and {A}", "$A and {A}"),
        ("${NONE:-a $b}", "a $b"),
        ("${RECURSIVE}", "${A}"),
    ],
)
def test_references_are_replaced_once(text: str, expected: str) -> None:
    environment = {"A": "one", "B": "two", "EMPTY": "", "RECURSIVE": "${A}"}

    assert fill(text, environment) == (expected, ())


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a${NONE}", 1, "the environment variable `NONE` is not set"),
        ("${1A}", 0, "`${` begins a reference"),
        ("${A", 0, "`${` begins a reference"),
        ("ab${A:-${B}", 2, "`${` begins a reference"),
    ],
)
def test_unset_variable_is_reported_at_its_position(text: str, offset: int, message: str) -> None:
    _, unfilled = fill(text, {"B": "two"})

    assert unfilled[0].offset == offset
    assert unfilled[0].message.startswith(message)


def test_interpolated_number_is_a_number_unless_quoted(tmp_path: Path) -> None:
    setting = "parquet:\n  upload_parallelism: ${N}\n"
    path = tmp_path / "d.yaml"
    path.write_text(DESTINATION + setting)

    assert load_destination(path, {"N": "7"}).model.parquet.upload_parallelism == 7
    quoted = setting.replace("${N}", '"${N}"')
    assert messages(problems_of(tmp_path, DESTINATION + quoted, N="7")) == [
        "`upload_parallelism` must be a whole number, not `${N}`"
    ]


def test_an_empty_value_of_the_environment_is_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(DESTINATION + "prefix: ${STAGE:-}\nendpoint_url: ${ENDPOINT}\n")

    model = load_destination(path, {"ENDPOINT": ""}).model

    assert (model.prefix, model.endpoint_url) == ("", "")


def test_keys_and_comments_are_not_filled(tmp_path: Path) -> None:
    found = problems_of(tmp_path, DESTINATION + "# ${NONE}\n${prefix}: x\n", prefix="prefix")

    assert messages(found) == ["unknown key `${prefix}`"]


def test_interpolated_value_is_never_in_a_message(tmp_path: Path) -> None:
    text = (
        "version: 1\nbucket: ${V}\nregion: ${V}\naddressing_style: ${V}\nsingle_writer: ${V}\n"
        "endpoint_url: ${V}\ntarget_file_size: ${V}\nprefix: s3://${V}\n"
        "credentials: {role_arn: '${V}'}\nparquet: {file_name_pattern: '${V}'}\n"
    )

    found = problems_of(tmp_path, text, V="Canary Value")

    assert len(found) == 9
    assert "Canary" not in repr(found)
