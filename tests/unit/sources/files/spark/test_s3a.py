"""What Spark is told about S3: settings of a bucket, and a command for its credentials."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec, TableSpec
from lakeload_jobs.sources.files.spark import s3a
from lakeload_jobs.sources.files.spark.s3a import credential_process, s3a_settings
from lakeload_jobs.sources.files.spark.source import FilesSource
from lakeload_jobs.sources.paths.spark_paths import plain_path, spark_path
from lakeload_jobs.sources.registry import Sources
from tests.unit.launch.specs import job_spec

PROFILE = Path("/run/0.profile")


def identity(**changes: object) -> DestinationSpec:
    return DestinationSpec("lake", "eu-west-1", **changes)  # type: ignore[arg-type]


def test_a_bucket_of_aws_needs_its_region_alone() -> None:
    settings = s3a_settings(identity(), "us-west-2", PROFILE)

    assert settings["endpoint.region"] == "us-west-2"
    assert settings["path.style.access"] == "false"
    assert "endpoint" not in settings


@pytest.mark.parametrize(
    ("style", "expected"), [("AUTO", "true"), ("PATH", "true"), ("VIRTUAL", "false")]
)
def test_another_store_is_reached_as_the_destination_is(style: str, expected: str) -> None:
    place = EndpointsSpec(s3="http://127.0.0.1:9000")

    settings = s3a_settings(identity(endpoints=place, addressing_style=style), "us-east-1", PROFILE)

    assert settings["endpoint"] == "http://127.0.0.1:9000"
    assert settings["connection.ssl.enabled"] == "false"
    assert settings["path.style.access"] == expected


def _answer(folder: Path, credentials: CredentialsSpec) -> subprocess.CompletedProcess[str]:
    """Run the command as the AWS SDK does: the value of a profile, by the shell."""
    file = folder / "0.json"
    file.write_text(json.dumps(to_json(identity(credentials=credentials))))
    command = credential_process(file, "attempt")
    assert " #" not in command
    assert " ;" not in command
    return subprocess.run(
        ["sh", "-c", command],
        env=dict(os.environ),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_keys_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "it's a #1 ;folder"
    folder.mkdir()
    # A file of that name in the working folder must not be imported instead of the library.
    (folder / "boto3.py").write_text("raise SystemExit('wrong module')")
    for name in ("key", "secret", "token"):
        (folder / name).write_text(f"CANARY {name}")
    keys = CredentialsSpec(
        access_key_id=SecretReference("file", str(folder / "key")),
        secret_access_key=SecretReference("file", str(folder / "secret")),
        session_token=SecretReference("file", str(folder / "token")),
    )

    ended = _answer(folder, keys)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {
        "Version": 1,
        "AccessKeyId": "CANARY key",
        "SecretAccessKey": "CANARY secret",
        "SessionToken": "CANARY token",
    }


def test_a_command_that_fails_says_why_on_stderr(tmp_path: Path) -> None:
    missing = SecretReference("env", "NOT_SET_ANYWHERE")
    keys = CredentialsSpec(access_key_id=missing, secret_access_key=missing)

    ended = _answer(tmp_path, keys)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "NOT_SET_ANYWHERE" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("key", ["a b.csv", "50%25+é.csv", "a#b?.csv", "a[1]{x}*\\.csv"])
def test_a_key_survives_the_way_through_spark(key: str) -> None:
    path = f"s3://bucket/data/{key}"

    assert spark_path(path, literal=False) == f"s3a://bucket/data/{key}"
    assert spark_path("s3://b/a[1]") == "s3a://b/a\\[1\\]"
    uri = "s3a://bucket/data/" + key.replace("%", "%25").replace(" ", "%20")
    assert plain_path(uri) == path


def test_the_tables_of_a_run_share_its_session_and_nothing_with_another_run(tmp_path: Path) -> None:
    spec = job_spec(RunFolder(tmp_path))
    aws = AwsSession(spec.destination)
    one, other = (_files(Sources(spec, aws), spec.tables) for _ in range(2))

    assert one[0].s3 is one[1].s3
    assert one[0].s3 is not other[0].s3
    own = replace(one[0].given, credentials=CredentialsSpec(profile="source"))
    assert one[0].s3.readers.objects(one[0].given)._session is aws
    assert one[0].s3.readers.objects(own)._session is not aws


def _files(sources: Sources, tables: Sequence[TableSpec]) -> list[FilesSource]:
    found = [sources.of(table) for table in tables]
    return [source for source in found if isinstance(source, FilesSource)]


class FakeSpark:
    """A Spark whose JVM says which settings it got, and which buckets were closed."""

    def __init__(self, application: str = "app-1") -> None:
        self.conf: dict[str, str] = {}
        self.closed: list[str] = []
        hadoop = SimpleNamespace(
            Path=lambda text: SimpleNamespace(toUri=lambda: text),
            FileSystem=SimpleNamespace(
                get=lambda uri, _: SimpleNamespace(close=lambda: self.closed.append(uri))
            ),
        )
        apache = SimpleNamespace(hadoop=SimpleNamespace(fs=hadoop))
        conf = SimpleNamespace(set=self.conf.__setitem__)
        self.sparkContext = SimpleNamespace(
            applicationId=application,
            _jsc=SimpleNamespace(hadoopConfiguration=lambda: conf),
            _jvm=SimpleNamespace(org=SimpleNamespace(apache=apache)),
        )


def test_bucket_stays_open_until_its_settings_change_or_credentials_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(s3a, "_opened", {})
    spark: Any = FakeSpark()
    file = "fs.s3a.bucket.exports.auth.profile.file"

    def opened(**changes: object) -> int:
        s3a._open(spark, "exports", identity(**changes), "us-east-1", tmp_path / "source", "a")
        return len(spark.closed)

    assert opened() == 0
    first = Path(spark.conf[file])
    assert "credential_process" in first.read_text()
    assert opened() == 0
    s3a.forget()
    assert (opened(), opened()) == (1, 1)
    assert Path(spark.conf[file]) == first
    assert opened(credentials=CredentialsSpec(profile="other")) == 2
    assert Path(spark.conf[file]) != first
    assert spark.closed == ["s3a://exports/"] * 2
    # The settings of another Spark are its own.
    later: Any = FakeSpark("app-2")
    s3a._open(later, "exports", identity(), "us-east-1", tmp_path / "source", "a")
    assert later.conf[file] == str(first)


def test_profiles_of_jobs_one_after_another_are_not_in_the_folder_of_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(s3a, "_kept_in", None)
    spec = job_spec(RunFolder(tmp_path / "job"))
    aws = AwsSession(spec.destination)
    assert s3a.S3Source(spec, aws)._folder == tmp_path / "job" / "source"
    s3a.keep_profiles(tmp_path / "driver")
    assert s3a.S3Source(spec, aws)._folder == tmp_path / "driver"
