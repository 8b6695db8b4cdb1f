"""`lakeload jars fetch`, ended while it makes an AppCDS archive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakeload.launch.process import members


def machine(root: Path) -> dict[str, str]:
    """A Java and a Spark whose spark-submit tells its id and never ends."""
    files = {
        "java/bin/java": "#!/bin/sh",
        "java/release": 'JAVA_VERSION="17.0.1"',
        "spark/jars/spark-core_2.13-4.1.4.jar": "",
        "spark/bin/spark-submit": f"#!/bin/sh\necho $$ > '{root}/id'; sleep 600; true",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return {
        "JAVA_HOME": str(root / "java"),
        "SPARK_HOME": str(root / "spark"),
        "LAKELOAD_CACHE_DIR": str(root / "cache"),
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_jars_fetch_stopped_leaves_no_process_and_no_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "destination.yml"
    file.write_text("version: 1\ntable_format: PARQUET\nbucket: lake-bucket\nregion: us-east-1\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "lakeload", "jars", "fetch", str(file)],
        env={**os.environ, **machine(tmp_path)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = tmp_path / "id"
    while not (started.exists() and started.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.05)
    session = int(started.read_text())
    assert members(session)

    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "interrupted" in stderr
    assert members(session) == []
    assert list((tmp_path / "cache" / "class-data").iterdir()) == []
