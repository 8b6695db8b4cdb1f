"""Each safety of the protocol is watched by a test: take the safety away, and the test fails.

A mutation here removes one safety from a copy of the sources and names the test that must notice.
When that code is written anew, so must be the mutation: that is the moment to ask whether the
safety is still there. test_mutate.py asks in milliseconds whether all of them fit.

Those that failed with the code as it is (proven.py) run in `make faults` alone.
"""

from __future__ import annotations

import os
import re
import shutil
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.environments import EXHAUSTIVE
from tests.faults.mutations.mutate import mutate, read_mutation
from tests.faults.mutations.proven import MUTATIONS, ROOT, to_prove
from tests.faults.mutations.run_mutated import run, server
from tests.servers.ministack import ENDPOINT_VARIABLE, AwsServer

_BROKEN = re.compile(r"^E +(\w*Import|Syntax|Name|Attribute|Type|Indentation)Error", re.MULTILINE)
"""What a test says that fails because the patch makes no sense, not because rows are in danger."""


@pytest.fixture(scope="module")
def forks() -> ForkServerContext:
    """What starts the processes of mutated tests."""
    return server()


def _cases() -> list[ParameterSet]:
    """Return all mutations, marked where there is no reason to run them with every `make test`."""
    due = set() if EXHAUSTIVE else to_prove()
    marks = {file: () if file.stem in due else (pytest.mark.exhaustive,) for file in MUTATIONS}
    return [pytest.param(file, marks=marks[file], id=file.stem) for file in MUTATIONS]


@pytest.mark.parametrize("file", _cases())
def test_mutation_without_a_safeguard_fails_its_test(
    file: Path, aws: AwsServer, forks: ForkServerContext, tmp_path: Path
) -> None:
    mutation = read_mutation(file)
    sources = tmp_path / "sparkjobs"
    # With the byte code, which is valid for copies that keep the time of the source.
    shutil.copytree(ROOT / "sparkjobs", sources)
    for changed, text in mutate(mutation, sources).items():
        changed.write_text(text, encoding="utf-8")
        for code in changed.parent.glob(f"__pycache__/{changed.stem}.*.pyc"):
            code.unlink()
    environment = {**os.environ, ENDPOINT_VARIABLE: aws.endpoint}
    ended, said = run(forks, mutation.test, sources, tmp_path / "log", environment)
    assert ended == 1, f"without this: {mutation.rule}\n{said[-4000:]}"
    assert not _BROKEN.search(said), said[-4000:]


def test_mutations_exist() -> None:
    assert len(MUTATIONS) > 15
