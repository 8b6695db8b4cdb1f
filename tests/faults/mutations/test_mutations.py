"""Each safety of the protocol is watched by a test: take the safety away, and the test fails.

A mutation here removes one safety from a copy of the sources and names the test that must notice.
When that code is written anew, so must be the mutation: that is the moment to ask whether the
safety is still there. tests/unit/faults asks in milliseconds whether all of them fit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.mutations.mutate import mutate, read_mutation
from tests.servers.ministack import ENDPOINT_VARIABLE, AwsServer

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_MUTATIONS = sorted(_HERE.glob("*.patch"))
_BROKEN = re.compile(r"^E +(\w*Import|Syntax|Name|Attribute|Type|Indentation)Error", re.MULTILINE)
"""What a test says that fails because the patch makes no sense, not because rows are in danger."""


@pytest.mark.parametrize("file", _MUTATIONS, ids=lambda file: file.stem)
def test_a_missing_safety_is_noticed(file: Path, aws: AwsServer, tmp_path: Path) -> None:
    mutation = read_mutation(file)
    sources = tmp_path / "sparkjobs"
    shutil.copytree(_ROOT / "sparkjobs", sources, ignore=shutil.ignore_patterns("__pycache__"))
    for changed, text in mutate(mutation, sources).items():
        changed.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutation.test],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(sources), ENDPOINT_VARIABLE: aws.endpoint},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, f"without this: {mutation.rule}\n{run.stdout[-4000:]}"
    assert not _BROKEN.search(run.stdout), run.stdout[-4000:]


def test_there_are_mutations() -> None:
    assert len(_MUTATIONS) > 15
