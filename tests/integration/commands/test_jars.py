"""`lakeload jars` as a user starts it: sets, documents, exit codes, streams."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from lakeload.machine.jars.pins import pinned
from tests.e2e.command import argv, forked
from tests.unit.commands.command import CONFIGS

pytestmark = pytest.mark.usefixtures("forked_commands")

AVRO = pinned("avro")[0]


@pytest.fixture
def avro(jars_cache: Path) -> Path:
    """The pinned jar, as another machine has it."""
    return jars_cache / "jars" / AVRO.file_name


@pytest.fixture
def brought(avro: Path, tmp_path: Path) -> Path:
    """A folder with just that jar."""
    folder = tmp_path / "brought"
    folder.mkdir()
    shutil.copy(avro, folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """An environment with a cache of its own and no repository to be asked."""
    return {
        "LAKELOAD_CACHE_DIR": str(tmp_path / "cache"),
        "LAKELOAD_MAVEN_REPOSITORY": "http://127.0.0.1:9/maven",
        "COLUMNS": "80",
    }


def jars(action: str, *arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run `lakeload jars`."""
    return subprocess.run(
        argv("jars", action, *arguments, python=forked()),
        cwd=CONFIGS,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def pipeline(folder: Path, **source: object) -> Path:
    document = {
        "version": 1,
        "name": "p",
        "destination": {
            "version": 1,
            "table_format": "PARQUET",
            "bucket": "lake-bucket",
            "region": "us-east-1",
        },
        "namespace": "n",
        "source": {
            "type": "FILES",
            "format": "AVRO",
            "options": {"avroSchema": "{}"},
            **source,
        },
        "tables": [{"table": "t", "path": "t.avro"}],
        "spark": {"conf": {"spark.jars.repositories": (folder / "brought").as_uri()}},
    }
    path = folder / "pipeline.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def test_fetch_list_and_verify_agree(brought: Path, cache: dict[str, str], tmp_path: Path) -> None:
    arguments = ["--for", "avro", "--no-archive", "--from", str(brought)]
    fetched = jars("fetch", *arguments, **cache)
    assert (fetched.returncode, fetched.stderr.splitlines()) == (
        0,
        [
            f"fetching 1 jar (90.2 KiB) from {brought}",
            f"{AVRO.file_name}  90.2 KiB  copied from `{brought}`",
        ],
    )
    assert fetched.stdout == f"1 jar (90.2 KiB) in {tmp_path}/cache/jars\n"
    # With it a load has nothing left to write there.
    assert len(list((tmp_path / "cache").glob("lakeload_jobs-*.zip"))) == 1

    listed = jars("list", **cache)
    assert listed.returncode == 0
    assert max(map(len, listed.stdout.splitlines()[:-1])) <= 80
    lines = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert "avro spark-avro_2.13 4.1.1 90.2 KiB present" in lines
    assert any(line.endswith("iceberg-aws-bundle 1.12.0 65.8 MiB missing") for line in lines)
    assert listed.stdout.endswith(f"cache: {tmp_path}/cache\n")

    verified = jars("verify", "--for", "avro", **cache)
    assert (verified.returncode, verified.stdout) == (
        0,
        "1 jar: 1 present, 0 missing, 0 broken\n",
    )


def test_jars_fetch_quiet_prints_no_success(brought: Path, cache: dict[str, str]) -> None:
    arguments = ["--for", "avro", "--no-archive", "--from", str(brought), "-q"]
    for action in (["fetch", *arguments], ["verify", "--for", "avro", "-q"]):
        process = jars(*action, **cache)
        assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_jars_verify_fails_for_broken_and_requested_missing_jars(
    brought: Path, cache: dict[str, str], tmp_path: Path
) -> None:
    assert jars("verify", **cache).returncode == 0
    missing = jars("verify", "--for", "avro", **cache)
    assert (missing.returncode, missing.stdout.splitlines()[0]) == (
        4,
        f"{AVRO.file_name}: missing",
    )

    folder = tmp_path / "cache" / "jars"
    folder.mkdir(parents=True)
    (folder / AVRO.file_name).write_bytes(b"broken")
    broken = jars("verify", **cache)
    found = hashlib.sha256(b"broken").hexdigest()
    assert broken.returncode == 4
    assert broken.stdout.splitlines()[-1] == "38 jars: 0 present, 37 missing, 1 broken"
    assert (
        f"{folder / AVRO.file_name}: has the SHA-256 {found}, and {AVRO.sha256} is expected"
        in broken.stdout
    )
    document = json.loads(jars("verify", "--output", "json", **cache).stdout)
    (item,) = [jar for jar in document["jars"] if jar["state"] == "broken"]
    assert document["exit_code"] == 4
    assert (item["found_sha256"], item["sha256"]) == (found, AVRO.sha256)


def test_a_pipeline_names_the_sets_and_the_repository(
    brought: Path, cache: dict[str, str], tmp_path: Path
) -> None:
    file = pipeline(tmp_path)

    fetched = jars("fetch", str(file), "--no-archive", "--output", "json", **cache)

    assert fetched.returncode == 0, fetched.stderr
    (jar,) = json.loads(fetched.stdout)["jars"]
    assert (jar["set"], jar["state"]) == ("avro", "present")
    assert jar["coordinates"] == "org.apache.spark:spark-avro_2.13:4.1.1"


def test_jars_fetch_unreachable_jar_exits_with_4_and_hints(cache: dict[str, str]) -> None:
    process = jars("fetch", "--for", "avro", **cache)

    assert process.returncode == 4
    assert "http://127.0.0.1:9/maven/org/apache/spark" in process.stderr
    assert "Connection refused" in process.stderr
    assert "--from" in process.stderr


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["list", "--from", "/x"], "go with `jars fetch`"),
        (["fetch", "--from", "/x", "--repository", "https://x"], "cannot be used together"),
        (["fetch", "--from", "/no/such/folder"], "is not a folder"),
        (["fetch", "--repository", "https://me:canary@x"], "every user of this machine"),
        (["burn"], "burn"),
    ],
)
def test_jars_conflicting_options_are_rejected(
    cache: dict[str, str], arguments: list[str], about: str
) -> None:
    process = jars(*arguments, **cache)

    assert process.returncode == 2
    assert about in " ".join(process.stderr.split())
    assert "canary" not in process.stderr


def test_jars_fetch_without_java_skips_only_the_archive(
    brought: Path, cache: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "spark").mkdir()
    cache["SPARK_HOME"] = str(tmp_path / "spark")

    process = jars("fetch", "--for", "avro", "--from", str(brought), **cache)

    assert process.returncode == 0
    assert f"no AppCDS archive: SPARK_HOME is `{tmp_path}/spark`" in process.stderr
    listed = jars("list", **cache)
    assert f"AppCDS archives: SPARK_HOME is `{tmp_path}/spark`" in listed.stdout
