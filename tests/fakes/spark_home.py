"""A SPARK_HOME whose spark-submit is the fake one."""

from __future__ import annotations

import sys
from pathlib import Path

FAKE = Path(__file__).with_name("fake_spark_submit.py")


def fake_spark_home(folder: Path) -> Path:
    """Make it in `folder`, and return it; what it is started with goes to `folder/argv`."""
    home = folder / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    submit = home / "bin" / "spark-submit"
    submit.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{folder}/argv'\n"
        f'exec "{sys.executable}" "{FAKE}" "$@"\n'
    )
    submit.chmod(0o755)
    return home
