"""Who answers for the base identity, asked of files and variables that tests make up."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakeload.checks import CheckStatus
from lakeload.machine.doctor.access import credentials, judge_source, secrets
from lakeload.machine.doctor.model import CheckContext, CheckResult, Need
from lakeload.ui.checks import word
from lakeload_jobs.aws.credentials import CredentialSource
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec
from tests.unit.machine.doctor.machines import context, destination

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every identity of the machine the tests run on away: boto3 reads os.environ."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def look(machine: CheckContext) -> CheckResult:
    (finding,) = credentials(machine)
    return finding


def needing(
    folder: Path, spec: CredentialsSpec | None = None, *, offline: bool = False
) -> CheckContext:
    need = Need(destination=destination(credentials=spec))
    return context(folder, need=need, offline=offline)


def keys(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7WXYZ")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    for name, value in more.items():
        monkeypatch.setenv(name, value)


def test_keys_of_the_environment_show_their_last_four_characters_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys(monkeypatch, AWS_SESSION_TOKEN="canary-token")
    finding = look(context(tmp_path))
    assert finding.status is CheckStatus.PASSED
    assert finding.found == "from the environment (AWS_ACCESS_KEY_ID), access key …WXYZ"


def test_missing_credentials_are_a_problem_only_where_needed(tmp_path: Path) -> None:
    general, asked = look(context(tmp_path)), look(needing(tmp_path))
    assert (general.status, asked.status) == (CheckStatus.WARNING, CheckStatus.FAILED)
    assert look(needing(tmp_path, offline=True)).status is CheckStatus.WARNING


def test_a_profile_is_named_with_its_provider(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[shop]\naws_access_key_id = AKIA00001234\naws_secret_access_key = canary\n"
    )
    finding = look(needing(tmp_path, CredentialsSpec(profile="shop")))
    assert finding.found == ("from the shared credentials file, profile `shop`, access key …1234")


def test_a_profile_that_does_not_exist_names_what_lists_them(tmp_path: Path) -> None:
    finding = look(needing(tmp_path, CredentialsSpec(profile="gone")))
    assert (finding.status, finding.command) == (CheckStatus.FAILED, "aws configure list-profiles")


def test_incomplete_access_key_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA00001234")
    finding = look(needing(tmp_path))
    assert (finding.status, finding.command) == (CheckStatus.FAILED, "aws configure")


def test_expired_login_names_the_command_that_renews_it(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "[profile shop]\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n"
        "region = us-east-1\n[sso-session s]\nsso_region = us-east-1\n"
        "sso_start_url = https://example.invalid/start\n"
    )
    spec = CredentialsSpec(profile="shop")
    finding = look(needing(tmp_path, spec))
    assert finding.status is CheckStatus.FAILED
    assert finding.command == "aws sso login --profile shop"
    offline = look(needing(tmp_path, spec, offline=True))
    assert offline.found == "from IAM Identity Center (SSO), profile `shop`"


def test_mfa_profile_is_reported_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "[profile shop]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n"
        "mfa_serial = arn:aws:iam::123456789012:mfa/me\n"
        "[profile base]\naws_access_key_id = AKIA1\naws_secret_access_key = canary\n"
    )
    finding = look(needing(tmp_path, CredentialsSpec(profile="shop")))
    assert finding.found == "from a role that the profile assumes, profile `shop`"


def process(folder: Path, expires: datetime) -> None:
    answer = (
        f'{{"Version": 1, "AccessKeyId": "ASIA00001234", "SecretAccessKey": "canary", '
        f'"SessionToken": "t", "Expiration": "{expires:%Y-%m-%dT%H:%M:%SZ}"}}'
    )
    script = folder / "answer.py"
    script.write_text(f"print({answer!r})\n")
    command = shlex.join([sys.executable, str(script)])
    (folder / "config").write_text(f"[default]\ncredential_process = {command}\n")


def test_credential_process_with_expired_keys_is_a_problem(tmp_path: Path) -> None:
    process(tmp_path, datetime.now(UTC) - timedelta(hours=1))
    finding = look(needing(tmp_path))
    assert finding.status is CheckStatus.FAILED
    assert "have expired" in finding.found
    assert "canary" not in str(finding)
    assert finding.command == "aws configure get credential_process"
    named = (tmp_path / "config").read_text().replace("[default]", "[profile shop]")
    (tmp_path / "config").write_text(named)
    finding = look(needing(tmp_path, CredentialsSpec(profile="shop")))
    assert finding.command == "aws configure get credential_process --profile shop"


def test_profile_without_keys_names_a_command_that_gives_it_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile shop]\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_PROFILE", "shop")
    finding = look(context(tmp_path, AWS_PROFILE="shop"))
    assert finding.command == "aws configure sso --profile shop"


def test_offline_starts_no_program(tmp_path: Path) -> None:
    process(tmp_path, datetime.now(UTC) + timedelta(hours=1))
    assert "…1234" in look(needing(tmp_path)).found
    assert look(needing(tmp_path, offline=True)).found.startswith("no AWS credentials")


@pytest.mark.parametrize(
    ("method", "minutes", "status"),
    [("env", -1, "problem"), ("env", 5, "warning"), ("env", 60, "ok"), ("iam-role", 5, "ok")],
)
def test_keys_that_expire_soon_are_reported_unless_renewed(
    method: str, minutes: int, status: str
) -> None:
    source = CredentialSource(method, None, "1234", NOW + timedelta(minutes=minutes))
    finding = judge_source(source, NOW)
    assert word(finding) == status
    assert bool(finding.command) == (status != "ok")


def test_missing_secrets_of_a_file_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("canary")
    monkeypatch.setenv("SHOP_ID", "canary")
    monkeypatch.delenv("SHOP_GONE", raising=False)
    here, gone = SecretReference("env", "SHOP_ID"), SecretReference("env", "SHOP_GONE")
    file = SecretReference("file", str(tmp_path / "key"))
    far = SecretReference("aws_secret", "x")
    spec = CredentialsSpec(access_key_id=here, secret_access_key=file, session_token=far)
    (finding,) = secrets(needing(tmp_path, spec))
    assert finding.status is CheckStatus.PASSED
    assert "canary" not in str(finding)
    (finding,) = secrets(needing(tmp_path, CredentialsSpec(external_id=gone)))
    assert (finding.status, finding.command) == (CheckStatus.FAILED, "export SHOP_GONE=…")
    lost = SecretReference("file", "/gone/my key")
    (finding,) = secrets(needing(tmp_path, CredentialsSpec(external_id=lost)))
    assert finding.command == "install -m 600 /dev/stdin '/gone/my key'"
    assert look(needing(tmp_path, spec)).found == "keys of the document, from {env: SHOP_ID}"
