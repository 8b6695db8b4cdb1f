"""`lakeload test-connection` as a user types it: answers, flags and exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.aws import loader_policy
from tests.e2e.command import argv, forked
from tests.servers.fault_proxy import FaultProxy, answer, delay
from tests.servers.ministack import Lake

pytestmark = pytest.mark.usefixtures("forked_commands")


def _run(file: Path, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv("test-connection", file, *flags, python=forked()),
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _place(text: str, words: str) -> bool:
    """Whether the words are in the text, wherever its lines are broken."""
    return words in " ".join(text.split())


def _json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_connection_test_of_a_valid_destination_prints_a_line_per_check_and_exits_with_0(
    base_identity: Lake, tmp_path: Path
) -> None:
    done = _run(base_identity.write_destination(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    begun = [line.split()[0] for line in lines if re.match(r"\w", line)]
    assert begun == ["passed"] * 14 + ["skipped"] + ["passed"] * 3 + ["connection"]
    assert _place(done.stdout, f"connection passed s3://{base_identity.seeded.bucket}/")
    assert _place(done.stdout, "17 passed, 1 skipped in")
    assert "\x1b" not in done.stdout


def test_a_failure_is_explained_with_action_resource_and_causes(
    base_identity: Lake, tmp_path: Path
) -> None:
    seeded = base_identity.seeded
    base_identity.server.admin.put_role_policy(
        seeded.role, loader_policy("another-bucket", seeded.prefix)
    )
    done = _run(base_identity.write_destination(tmp_path))
    assert done.returncode == 3
    assert "✗ list: listing" in done.stdout
    assert _place(done.stdout, "(`AccessDenied`, HTTP 403)")
    assert f"IAM action: s3:ListBucket on arn:aws:s3:::{seeded.bucket}\n" in done.stdout
    assert "1. no policy of the role or user allows s3:ListBucket" in done.stdout
    assert done.stdout.splitlines()[-2].startswith("connection failed at list (AccessDenied)")
    # A path or an ARN is never broken: it can be pasted.
    words = [line.split() for line in done.stdout.splitlines() if len(line) > 80]
    assert [line for line in words if len(line) > 2 and line[-3:-1] != ["lakeload", "policy"]] == []


def test_the_statement_of_a_denial_grants_it(base_identity: Lake, tmp_path: Path) -> None:
    seeded, admin = base_identity.seeded, base_identity.server.admin
    whole = loader_policy(seeded.bucket, seeded.prefix)
    statements = whole["Statement"]
    assert isinstance(statements, list)
    without = [one for one in statements if "s3:DeleteObject" not in one["Action"]]
    admin.put_role_policy(seeded.role, {**whole, "Statement": without})
    file = base_identity.write_destination(tmp_path)
    text, document = _run(file), _json(_run(file, "--output", "json"))
    denied = [probe for probe in document["probes"] if probe["failure"]]
    assert [probe["name"] for probe in denied] == ["delete"]
    statement = denied[0]["failure"]["statement"]
    assert statement["Action"] == "s3:DeleteObject"
    assert "this statement in a policy of the role or user grants it:" in text.stdout
    assert f'"Resource": "{statement["Resource"]}"' in text.stdout
    assert _place(text.stdout, f"lakeload policy {file}")
    admin.put_role_policy(seeded.role, {**whole, "Statement": [*without, statement]})
    assert _run(file).returncode == 0


def test_json_is_one_document_with_stable_keys(base_identity: Lake, tmp_path: Path) -> None:
    done = _run(
        base_identity.write_destination(tmp_path),
        *("--output", "json"),
        LAKELOAD_EXTERNAL_ID="wrong",
    )
    document = _json(done)
    assert done.returncode == 3
    assert set(document) == {
        *("status", "bucket", "prefix", "region", "role_arn", "seconds", "probes", "left_behind")
    }
    assert document["status"] == "failed"
    assert all(
        set(probe)
        == {
            *("name", "proves", "level", "status", "milliseconds"),
            *("action", "resource", "also_needs", "detail", "failure"),
        }
        for probe in document["probes"]
    )
    failed = next(probe for probe in document["probes"] if probe["failure"])
    assert failed["name"] == "assume-role"
    assert set(failed["failure"]) == {
        *("message", "code", "status", "request_id", "causes", "hint", "docs", "statement")
    }
    assert failed["failure"]["statement"]["Action"] == "sts:AssumeRole"
    assert (failed["failure"]["code"], failed["failure"]["status"]) == ("AccessDenied", 403)
    assert failed["failure"]["request_id"]


def test_denied_role_shows_the_request_id(base_identity: Lake, tmp_path: Path) -> None:
    done = _run(base_identity.write_destination(tmp_path), LAKELOAD_EXTERNAL_ID="wrong")
    assert re.search(r"^    request id: \S+$", done.stdout, re.MULTILINE)


def test_connection_test_quiet_prints_one_line(base_identity: Lake, tmp_path: Path) -> None:
    file = base_identity.write_destination(tmp_path)
    right, wrong = _run(file, "-q"), _run(file, "-q", LAKELOAD_EXTERNAL_ID="wrong")
    assert (right.returncode, wrong.returncode) == (0, 3)
    assert len(right.stdout.splitlines()) == len(wrong.stdout.splitlines()) == 1
    assert "connection failed at assume-role (AccessDenied)" in wrong.stdout


def test_quiet_names_what_is_left_behind(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    fault_proxy.on("DeleteObject", answer(403, "AccessDenied"), key="*-object")
    file = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    (told,) = _run(file, "-q").stdout.splitlines()
    assert re.search(r"connection passed .*; left behind: s3://\S+-object\b", told)


def test_read_only_sends_nothing_that_writes(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    file = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    done = _run(file, "--read-only")
    assert done.returncode == 0
    assert _place(done.stdout, "9 passed")
    reading = {"GetCallerIdentity", "AssumeRole", "HeadBucket", "ListObjectsV2"}
    sent = {request.operation for request in fault_proxy.requests}
    assert sent == reading | {"ListMultipartUploads"}


def test_connection_test_writes_below_the_probe_path_only(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    done = _run(base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint))
    assert done.returncode == 0
    keys = {request.key for request in fault_proxy.requests if request.key}
    place = f"{base_identity.seeded.prefix}/_lakeload/"
    assert {key.split("/")[-2] for key in keys if key.startswith(place)} == {"probe", "job-history"}
    assert all(key.startswith(place) for key in keys)
    # Asked with an ETag that no object has.
    asked = [one for one in fault_proxy.requests if "/job-history/" in one.key]
    assert [(one.operation, bool(one.header("If-Match"))) for one in asked] == [("PutObject", True)]
    assert base_identity.keys() == []


def test_skipped_check_counts_as_passed(base_identity: Lake, tmp_path: Path) -> None:
    done = _run(
        base_identity.write_destination(tmp_path),
        *("--skip", "external-id-enforced", "--skip", "list-uploads", "--output", "json"),
    )
    skipped = [probe["name"] for probe in _json(done)["probes"] if probe["status"] == "skipped"]
    assert (done.returncode, skipped) == (
        0,
        ["external-id-enforced", "list-uploads", "encryption"],
    )


@pytest.mark.parametrize(
    "flags",
    [
        ("--skip", "lst"),
        ("--timeout", "soon"),
        ("--timeout", "0s"),
        ("--wait", "-1"),
        ("--wait", "2h"),
    ],
    ids=" ".join,
)
def test_a_bad_flag_is_exit_code_2(
    base_identity: Lake, tmp_path: Path, flags: tuple[str, str]
) -> None:
    done = _run(base_identity.write_destination(tmp_path), *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert flags[1] in done.stderr


def test_connection_test_invalid_file_exits_with_2_without_requests(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    done = _run(
        base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint, bucket="NO")
    )
    assert done.returncode == 2
    assert fault_proxy.requests == []


def test_connection_test_of_a_pipeline_checks_its_destination(
    base_identity: Lake, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("id\n1\n")
    file = base_identity.write_pipeline(
        tmp_path, tables=[{"table": "orders", "path": "orders.csv"}]
    )
    assert _run(file).returncode == 0


def test_connection_test_without_responses_ends_within_its_timeout(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    fault_proxy.on("*", delay(60))
    file = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    started = time.monotonic()
    done = _run(file, "--timeout", "3")
    assert done.returncode == 3
    assert time.monotonic() - started < 3 + 4  # the interpreter and its imports come on top


def test_connection_test_wait_retries_a_denied_role_until_iam_allows_it(
    base_identity: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    fault_proxy.on("AssumeRole", answer(403, "AccessDenied"), times=1)
    file = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    done = _run(file, "--timeout", "10", "--wait", "60")
    assert done.returncode == 0
    told = " ".join(done.stdout.split())
    assert re.search(r"passed assume-role [^:]*: after \d+ s,", told)


def test_connection_test_on_a_terminal_prints_a_complete_table_that_fits(
    base_identity: Lake, tmp_path: Path
) -> None:
    file = base_identity.write_destination(tmp_path)
    program = shlex.join([sys.executable, "-m", "lakeload", "test-connection", str(file)])
    command = f"stty cols 80 rows 60; {program}"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    last = done.stdout.rpartition("\x1b[1A\x1b[2K")[2]
    assert last.count("✓") == 17
    assert all(len(line.rstrip()) <= 80 for line in last.split("\r\n")[1:-3])
    assert "connection passed" in last
