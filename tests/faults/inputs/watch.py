"""Cases in a process of their own: one that ends it, or takes too long, is a finding too."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from lakeload.sources.files.bounded import data_size
from lakeload_jobs.contract.errors import LakeloadError
from tests.faults.inputs.mutants import seeds as seeds_of_files
from tests.faults.inputs.targets import TARGETS

SECONDS = 20
"""Timeout of one case."""
MEMORY = 3 << 30
"""Limit of the memory of a case beside what the command has, in bytes."""
_CASES = 500
"""Cases of one process."""


@dataclass(frozen=True)
class Case:
    """One input of a target; `finding` is what went wrong, '' for nothing."""

    target: str
    seed: int
    finding: str = ""


def run_cases(target: str, seed: int, times: int) -> Iterator[Case]:
    """Run cases of a target: those of `seed` and of the seeds that follow."""
    with TemporaryDirectory() as folder:
        left = range(seed, seed + times)
        while left:
            some = left[:_CASES]
            for case in _in_process(target, some, Path(folder)):
                left = left[1:]
                yield case


def _in_process(target: str, seeds: range, folder: Path) -> Iterator[Case]:
    """Yield cases, up to one that the process does not survive."""
    seeds_of_files()  # once, for all processes
    context = multiprocessing.get_context("fork")
    results, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(target, seeds, folder, sender), daemon=False)
    process.start()
    sender.close()
    try:
        for seed in seeds:
            if not results.poll(SECONDS):
                yield Case(target, seed, f"takes more than {SECONDS} seconds")
                return
            try:
                yield Case(target, seed, results.recv())
            except EOFError:
                process.join()
                yield Case(target, seed, f"ended the process with status {process.exitcode}")
                return
    finally:
        process.kill()
        process.join()
        results.close()


def _run(target: str, seeds: range, folder: Path, sender: Connection) -> None:
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = data_size() + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    for seed in seeds:
        own = folder / str(seed)
        own.mkdir()
        try:
            TARGETS[target](Random(seed), own)  # noqa: S311
            found = ""
        except LakeloadError:
            found = ""
        except BaseException:  # noqa: BLE001 - each is a finding
            found = traceback.format_exc()
        sender.send(found)
        shutil.rmtree(own, ignore_errors=True)
