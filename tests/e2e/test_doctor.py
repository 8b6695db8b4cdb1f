"""`lakeload doctor` as a user starts it, on a machine that lacks something and with an endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

DESTINATION = """version: 1
bucket: lake
region: us-east-1
endpoint_url: {endpoint}
credentials:
  access_key_id: {{env: SHOP_KEY}}
  secret_access_key: {{env: SHOP_SECRET}}
"""


class _Endpoint(BaseHTTPRequestHandler):
    """Refuses whoever does not sign, at this machine's own time."""

    def do_HEAD(self) -> None:
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def doctor(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lakeload", "doctor", "--timeout", "60s", *arguments],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LAKELOAD_RUN_DIR": str(folder / "runs"),
            "LAKELOAD_CACHE_DIR": str(folder / "cache"),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_doctor_on_an_incomplete_machine_prints_the_fix_of_each_problem(
    tmp_path: Path, endpoint: str
) -> None:
    (tmp_path / "destination.yml").write_text(DESTINATION.format(endpoint=endpoint))
    lacking = {"SPARK_HOME": "/gone", "SHOP_KEY": "AKIAcanary", "JAVA_HOME": "/gone"}

    text = doctor(tmp_path, "destination.yml", **lacking)
    answer = doctor(tmp_path, "destination.yml", "--output", "json", **lacking)

    assert (text.returncode, answer.returncode, text.stderr, answer.stderr) == (4, 4, "", "")
    document = json.loads(answer.stdout)
    assert (document["status"], document["exit_code"]) == ("problem", 4)
    assert document["file"] == "destination.yml"
    found = {finding["name"]: finding for finding in document["findings"]}
    assert found["clock"]["status"] == "ok"
    assert endpoint in found["clock"]["found"]
    mended = {name: found[name]["command"] for name in ("spark-home", "secrets")}
    assert mended == {"spark-home": "unset SPARK_HOME", "secrets": "export SHOP_SECRET=…"}
    assert found["java-home"]["status"] == "warning"
    assert "problem  spark-home       SPARK_HOME is `/gone`, which has no Spark" in text.stdout
    assert "→ export SHOP_SECRET=…" in text.stdout
    assert "canary" not in text.stdout + answer.stdout
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["destination.yml"]


def test_doctor_with_an_invalid_file_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "destination.yml").write_text("version: 1\nbuckte: lake\nregion: eu-west-1\n")
    ended = doctor(tmp_path, "destination.yml", "--offline")
    assert ended.returncode == 2
    assert "did you mean `bucket`?" in ended.stderr
