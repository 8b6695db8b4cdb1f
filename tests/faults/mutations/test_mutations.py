"""Each safety of the protocol is watched by a test: take the safety away, and the test fails.

A patch here removes one safety from a copy of the sources and names the test that must notice. When
the code it touches changes, the patch has to be made anew: that is the moment to ask whether the
safety is still there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.ministack import ENDPOINT_VARIABLE, AwsServer

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_PATCHES = sorted(_HERE.glob("*.patch"))
_BROKEN = re.compile(r"^E +(\w*Import|Syntax|Name|Attribute|Type|Indentation)Error", re.MULTILINE)
"""What a test says that fails because the patch makes no sense, not because rows are in danger."""


@pytest.mark.parametrize("patch", _PATCHES, ids=lambda patch: patch.stem)
def test_a_missing_safety_is_noticed(patch: Path, aws: AwsServer, tmp_path: Path) -> None:
    head = dict(line.split(": ", 1) for line in patch.read_text().splitlines()[:2])
    shutil.copytree(
        _ROOT / "sparkjobs", tmp_path / "sparkjobs", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", head["Test"]],
        cwd=_ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path / "sparkjobs"),
            ENDPOINT_VARIABLE: aws.endpoint,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, f"without this: {head['Rule']}\n{run.stdout[-4000:]}"
    assert not _BROKEN.search(run.stdout), run.stdout[-4000:]


def test_there_are_patches() -> None:
    assert len(_PATCHES) > 15
