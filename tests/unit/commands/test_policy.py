"""`lakeload policy`: what it asks, what it writes where, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lakeload.app import app
from lakeload.policy.principals import parse_principal, principal_arn
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference

USER = "arn:aws:iam::111122223333:user/loader"
DESTINATION = """
version: 1
bucket: my-data-lake
region: us-east-1
prefix: data
credentials:
  role_arn: arn:aws:iam::123456789012:role/loader
  external_id: {env: LAKELOAD_EXTERNAL_ID}
"""
PIPELINE = """
version: 1
name: shop
destination: destination.yml
source: {type: FILES, format: CSV}
tables:
  - {table: orders, path: "s3://raw/2026/*.csv"}
"""


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    """A destination with a role and an ExternalId."""
    path = tmp_path / "destination.yml"
    path.write_text(DESTINATION)
    return path


def policy(*arguments: object, **environment: str) -> Result:
    """Run the command in this process; stdout is no terminal."""
    words = ["policy", *(str(argument) for argument in arguments)]
    return CliRunner(env=environment).invoke(app, words)


def trust_of(result: Result) -> list[dict[str, object]]:
    """Return the statements of the trust policy."""
    assert result.exit_code == 0, result.stderr
    statements: list[dict[str, object]] = json.loads(result.stdout)["trust"]["Statement"]
    return statements


def test_policy_in_a_pipe_prints_one_document_and_reasons_on_stderr(destination: Path) -> None:
    result = policy(destination, "--principal", USER)

    assert set(json.loads(result.stdout)) == {"trust", "s3", "base"}
    assert (
        "s3: WriteObjects: files, metadata and the job history are read and written"
        in result.stderr
    )


def test_policy_quiet_prints_no_reasons(destination: Path) -> None:
    assert policy(destination, "--principal", USER, "-q").stderr == ""


def test_policy_single_document_is_valid_for_iam(destination: Path) -> None:
    result = policy(destination, "--only", "s3")

    document = json.loads(result.stdout)
    assert set(document) == {"Version", "Statement"}
    assert document["Statement"][0]["Action"] == "s3:ListBucket"


def test_an_external_id_is_shown_on_demand_alone(destination: Path) -> None:
    given = {"LAKELOAD_EXTERNAL_ID": "very-secret-42"}
    for form in ("json", "cli", "terraform"):
        hidden = policy(destination, "--principal", USER, "--format", form, **given)
        assert hidden.exit_code == 0
        assert "very-secret-42" not in hidden.output
        shown = policy(
            destination, "--principal", USER, "--format", form, "--reveal-external-id", **given
        )
        assert shown.stdout.count("very-secret-42") == 1
        assert "very-secret-42" not in shown.stderr


def test_an_external_id_that_is_not_set_cannot_be_shown(destination: Path) -> None:
    result = policy(destination, "--principal", USER, "--reveal-external-id")

    assert result.exit_code == 2
    assert "`LAKELOAD_EXTERNAL_ID` is not set" in result.stderr


def test_every_principal_has_its_own_external_id(destination: Path) -> None:
    other = "arn:aws:iam::777788889999:user/compute"
    result = policy(
        destination,
        *("--principal", USER),
        *("--principal", f"{other},external-id=aws_secret:snowflake/id"),
        *("--principal", "444455556666"),
    )

    found = [
        (one["Principal"], one["Condition"]["StringEquals"]["sts:ExternalId"])  # type: ignore[index]
        for one in trust_of(result)
    ]
    assert found == [
        ({"AWS": [USER, "arn:aws:iam::444455556666:root"]}, "<LAKELOAD_EXTERNAL_ID>"),
        ({"AWS": other}, "<EXTERNAL_ID>"),
    ]
    assert "every principal with sts:AssumeRole there" in " ".join(result.stderr.split())


def test_no_two_secrets_share_a_placeholder(destination: Path) -> None:
    names = ("env:A.B", "env:a_b", "file:one", "file:two")
    given = [
        word
        for number, name in enumerate(names)
        for word in ("--principal", f"11112222333{number},external-id={name}")
    ]
    result = policy(destination, *given, "--only", "trust")

    found = [
        one["Condition"]["StringEquals"]["sts:ExternalId"]
        for one in json.loads(result.stdout)["Statement"]
    ]
    assert found == ["<A_B>", "<EXTERNAL_ID_2>", "<EXTERNAL_ID>", "<EXTERNAL_ID_3>"]


def test_two_principals_without_an_external_id_are_warned_about(destination: Path) -> None:
    destination.write_text(DESTINATION.replace("external_id:", "session_duration: 900 #"))
    result = policy(destination, "--principal", USER, "--principal", USER)

    (statement,) = trust_of(result)
    assert statement["Principal"] == {"AWS": USER}
    assert "Condition" not in statement
    assert "confused deputy" in " ".join(result.stderr.split())


def test_without_a_network_the_flag_to_give_is_named(
    destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = "endpoints: {sts: 'http://127.0.0.1:9'}"
    destination.write_text(f"{DESTINATION}{closed}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    result = policy(destination)

    assert result.exit_code == 3
    assert "getting your identity from STS" in result.stderr
    assert "--principal arn:aws:iam::" in result.stderr
    assert result.stdout == ""


def test_policy_without_a_role_sends_no_sts_request(destination: Path) -> None:
    closed = "endpoints: {sts: 'http://127.0.0.1:9'}"
    destination.write_text(f"{DESTINATION.split('credentials')[0]}{closed}\n")
    result = policy(destination)

    assert result.exit_code == 0
    assert set(json.loads(result.stdout)) == {"s3"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--principal", "loader"),
        ("--principal", "*"),
        ("--principal", "arn:aws:iam::1234:user/x"),
        ("--principal", "arn:aws:s3:::bucket"),
        ("--principal", "arn:aws-cn:iam::111122223333:user/x"),
        ("--principal", f"{USER},external-id=plain-secret"),
        ("--principal", f"{USER},external_id=plain-secret"),
        ("--principal", f"{USER} ExternalId=plain-secret"),
        ("--principal", USER, "--account", "123"),
        ("--read-only", "--with", "reset"),
        ("--read-only", "--with", "maintain"),
        ("--only", "glue", "--principal", USER),
        ("--only", "trust", "--read-only"),
    ],
)
def test_policy_conflicting_options_are_rejected(
    destination: Path, arguments: tuple[str, ...]
) -> None:
    result = policy(destination, *arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "hint:" in result.stderr or "--account" in arguments
    assert "plain-secret" not in result.output
    assert result.stdout == ""


def test_a_pipeline_adds_what_its_source_needs(destination: Path) -> None:
    pipeline = destination.with_name("pipeline.yml")
    pipeline.write_text(PIPELINE)
    result = policy(pipeline, "--only", "source")

    listing, reading = json.loads(result.stdout)["Statement"]
    assert listing["Resource"] == "arn:aws:s3:::raw"
    assert reading["Resource"] == "arn:aws:s3:::raw/2026/*"


def test_reset_is_a_document_of_its_own(destination: Path) -> None:
    result = policy(destination, "--principal", USER, "--with", "reset")

    (statement,) = json.loads(result.stdout)["reset"]["Statement"]
    assert statement["Action"] == "s3:DeleteObject"
    assert statement["Resource"] == "arn:aws:s3:::my-data-lake/data/*"


def test_readers_get_no_trust_policy_and_no_way_to_write(destination: Path) -> None:
    result = policy(destination, "--read-only", "--only", "s3")

    actions = {one["Action"] for one in json.loads(result.stdout)["Statement"]}
    assert actions == {"s3:ListBucket", "s3:GetBucketLocation", "s3:GetObject"}


def test_policy_beyond_the_size_of_iam_is_reported(destination: Path) -> None:
    pipeline = destination.with_name("pipeline.yml")
    tables = "".join(
        f"  - {{table: t{number}, path: 's3://raw/{number:03d}{'x' * 60}/*.csv'}}\n"
        for number in range(60)
    )
    pipeline.write_text(PIPELINE.split("  - {")[0] + tables)
    result = policy(pipeline, "--only", "source")

    assert result.exit_code == 0
    assert "IAM takes 6,144 in a managed policy" in " ".join(result.stderr.split())


def test_policy_inline_in_a_user_has_a_smaller_limit(destination: Path) -> None:
    tags = ", ".join(f"{'k' * 100}{number}: v" for number in range(22))
    destination.write_text(f"{DESTINATION}  session_tags: {{{tags}}}\n")
    given = ("--principal", USER, "--only", "base")
    assert "IAM takes 2,048 in the policies embedded in a user" in " ".join(
        policy(destination, *given, "--format", "cli").stdout.replace("#", " ").split()
    )
    assert "IAM takes" not in policy(destination, *given).stderr


def test_policy_characters_rejected_by_iam_are_reported(destination: Path) -> None:
    destination.write_text(DESTINATION.replace("prefix: data", "prefix: データ"))
    assert "beyond U+00FF" in " ".join(policy(destination, "--only", "s3").stderr.split())
    destination.write_text(DESTINATION.replace("prefix: data", "prefix: données"))
    assert "U+00FF" not in policy(destination, "--only", "s3").stderr


@pytest.mark.parametrize("form", ["cli", "terraform"])
def test_lines_of_text_fit_80_columns(destination: Path, form: str) -> None:
    result = policy(destination, "--principal", USER, "--format", form)

    comments = [line for line in result.stdout.splitlines() if line.startswith("#")]
    assert comments
    assert max(map(len, comments)) <= 80
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("given", "arn"),
    [
        ("111122223333", "arn:aws:iam::111122223333:root"),
        (USER, USER),
        (
            "arn:aws:sts::111122223333:assumed-role/Deploy/me@example.com",
            "arn:aws:iam::111122223333:role/Deploy",
        ),
        (
            "arn:aws:iam::111122223333:role/aws-reserved/sso/Admin",
            "arn:aws:iam::111122223333:role/aws-reserved/sso/Admin",
        ),
    ],
)
def test_principals_are_written_as_a_trust_policy_takes_them(given: str, arn: str) -> None:
    assert principal_arn(given) == arn


def test_an_account_is_of_the_buckets_partition() -> None:
    assert principal_arn("111122223333", "aws-cn") == "arn:aws-cn:iam::111122223333:root"


def test_a_federated_user_is_no_principal_of_a_role() -> None:
    with pytest.raises(InvalidInput, match="nor the ARN of an account, a user or a role"):
        principal_arn("arn:aws:sts::111122223333:federated-user/me")


def test_an_external_id_is_a_reference() -> None:
    found = parse_principal(f"{USER},external-id=file:/run/secrets/a,b")
    assert found == (USER, SecretReference("file", "/run/secrets/a,b"))


def test_policy_notes_on_kms_and_glue_are_beside_their_documents_only(
    destination: Path,
) -> None:
    with destination.open("a") as file:
        file.write("encryption: {type: SSE_KMS, kms_key_id: alias/lake}\n")
        file.write("parquet: {update_glue_catalog: true}\n")
    told = {
        only: " ".join(policy(destination, "--principal", USER, "--only", only).stderr.split())
        for only in ("trust", "kms", "glue")
    }

    key, databases = "The key's own policy", "every database of the account"
    assert [name for name, text in told.items() if key in text] == ["kms"]
    assert [name for name, text in told.items() if databases in text] == ["glue"]
