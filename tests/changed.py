"""Judge a change in about two minutes: `python -m tests.changed [--base REV] [--list]`.

Changed is what differs from the base or is not committed. The base is where the branch left its
upstream, or origin/main; without either it is HEAD.

ruff and mypy check everything: with their caches they take a second. Then the test files run that
lead to a changed module (tests/import_graph.py): those that import or read it first, then those of
folders that are named like its own. All of the quick layers run, of the others as many as fit into
`BUDGET`, by the CPU seconds in tests/times.json. What is left out is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from tests import scheduler
from tests.import_graph import FAR, Graph, is_test, read_graph
from tests.structure import PRODUCT, ROOT

TIMES = "tests/times.json"
"""CPU seconds by test file, written by `python -m tests.times --json tests/times.json`."""
BUDGET = 190
"""CPU seconds of tests: two cores for two minutes, less what lint and pytest need to start."""
SPARK = 40
"""CPU seconds until a JVM has started and compiled what the first test needs."""
USUAL = {
    "unit": 0.5,
    "corpus": 5,
    "mutations": 5,
    "root": 2,
    "servers": 1,
    "model": 10,
    "integration": 8,
}
"""CPU seconds of a file that tests/times.json does not have, by layer; 15 in others."""
QUICK = ("unit", "corpus", "model", "mutations", "root")
"""The layers of which everything runs that a change leads to."""
EVERYTHING = ("pyproject.toml",)
"""Files that every test depends on: here are the dependencies and pytest's settings."""
WIDTH = 80
_GENERAL = {"tests", "test", "unit", "integration", "sparkjobs", "cli", "lakeload", "lakeload_jobs"}


class UnknownBase(Exception):
    """A revision that git does not have, or no repository."""


@dataclass(frozen=True)
class Choice:
    """The test files to run, the nearest first, with the steps to the change; and the rest."""

    run: dict[str, int]
    left_out: list[str]
    unread: list[str]
    """Changed files that no module reads, as far as known."""


def changed_files(base: str | None, root: Path = ROOT) -> tuple[str, list[str]]:
    """Return the base, and the files that differ from it or are not committed. Raises
    `UnknownBase`."""
    start = base or _start_of_branch(root)
    differ = _git(root, "diff", "--name-only", "--no-renames", "-z", start, "--")
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return start, sorted({*differ.split("\0"), *untracked.split("\0")} - {""})


def choose(changed: Sequence[str], graph: Graph, times: dict[str, float]) -> Choice:
    """Return the test files that a change leads to, as far as they fit into the budget."""
    seeds = {file for file in changed if file in graph.modules}
    unread = []
    for file in set(changed) - seeds:
        modules = graph.beside(file) if file.endswith(".py") else graph.readers(file)
        seeds |= modules
        if not modules:
            unread.append(file)
    steps = graph.distances(seeds)
    settings = bool(set(EVERYTHING) & set(changed))
    general = [test for test in graph.tests if settings or (unread and layer(test) == "root")]
    steps = {**dict.fromkeys(general, FAR), **steps}
    words = _words(changed)
    tests = sorted(
        (test for test in steps if is_test(test)),
        key=lambda test: (
            *(steps[test] > 1, slow(test), -len(words & _words([test]))),
            *(steps[test], cost(test, times)),
        ),
    )
    run = affordable(tests, set(changed), times)
    left_out = [test for test in tests if test not in run]
    return Choice({test: steps[test] for test in tests if test in run}, left_out, sorted(unread))


def affordable(tests: Sequence[str], changed: set[str], times: dict[str, float]) -> set[str]:
    """Return the tests that run: those that changed, all quick ones, the nearest of the others."""
    run = {test for test in tests if test in changed or not slow(test)}
    spent = sum(cost(test, times) for test in run)
    jvm = any(scheduler.needs_spark(test) for test in run)
    for test in tests:
        starts = not jvm and scheduler.needs_spark(test)
        price = cost(test, times) + SPARK * starts
        if test not in run and spent + price <= BUDGET:
            run.add(test)
            spent, jvm = spent + price, jvm or starts
    return run


def layer(test: str) -> str:
    """Return the layer of a test file."""
    parts = PurePosixPath(test).parts
    return "mutations" if "mutations" in parts else parts[1] if len(parts) > 2 else "root"


def slow(test: str) -> bool:
    """Return whether a file may start servers and Java."""
    return layer(test) not in QUICK


def cost(test: str, times: dict[str, float]) -> float:
    """Return the CPU seconds of a test file."""
    return times.get(test, USUAL.get(layer(test), 15))


def lint(changed: Sequence[str]) -> list[list[str]]:
    """Return the commands that check the code, as far as a change can break what they check."""
    settings = "pyproject.toml" in changed
    code = [file for file in changed if file.endswith(".py")]
    commands = []
    if code or settings:
        commands += [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
    if settings or any(file.startswith(PRODUCT) for file in code):
        commands.append(["lint-imports", "--no-logo"])
    bin_folder = Path(sys.executable).parent
    return [[str(bin_folder / program), *arguments] for program, *arguments in commands]


def test_command(tests: Sequence[str], times: dict[str, float]) -> list[str]:
    """Return the command that runs test files in this order."""
    workers: tuple[str, ...] = ()
    if sum(cost(test, times) for test in tests) > 15:
        workers = ("--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    return [sys.executable, "-m", "pytest", "-q", "-p", "tests.changed", *workers, *tests]


def pytest_configure(config: pytest.Config) -> None:
    """Start Spark in one worker: a hook of pytest, as is the next."""
    if config.option.dist == "loadfile" and not hasattr(config, "workerinput"):
        scheduler.SPARK_WORKERS = 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the order of the command line, which tests/conftest.py changes."""
    places = {str(config.rootpath / name): place for place, name in enumerate(config.args)}
    items.sort(key=lambda item: places.get(str(item.path), len(places)))


def report(changed: Sequence[str], choice: Choice, times: dict[str, float]) -> list[str]:
    """Return what runs and why, and what does not."""
    lines = [f"  {file}" for file in changed[:8]]
    lines += [f"  … and {len(changed) - 8} more"] if len(changed) > 8 else []
    lines += [f"No module reads {file}: the tests in tests/ itself run" for file in choice.unread]
    lines.append(f"Tests that lead to them: {_summary(choice.run, times)}")
    near = [test for test, steps in choice.run.items() if steps <= 1]
    lines += [f"  {test}" for test in near[:6]]
    lines += [f"  … and {len(near) - 6} more that import, read or are one"] if near[6:] else []
    if choice.left_out:
        lines += [f"Left out: {_summary(choice.left_out, times)}", "  `make test` runs them"]
    return [part for line in lines for part in _wrapped(line)]


def _summary(tests: Iterable[str], times: dict[str, float]) -> str:
    files = list(tests)
    layers = ", ".join(f"{name} {n}" for name, n in Counter(map(layer, files)).most_common())
    seconds = sum(cost(test, times) for test in files)
    return f"{len(files)} files, about {seconds:.0f} CPU s ({layers})" if files else "none"


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _words(files: Iterable[str]) -> set[str]:
    """Return what paths are about: their folders, and the parts of the file's name."""
    paths = [PurePosixPath(file) for file in files]
    words = {part for path in paths for part in (*path.parts[:-1], *path.stem.split("_"))}
    return words - _GENERAL


def _start_of_branch(root: Path) -> str:
    for upstream in ("@{upstream}", "origin/main"):
        try:
            return _git(root, "merge-base", "HEAD", upstream).strip()
        except UnknownBase:
            continue
    return "HEAD"


def _git(root: Path, *arguments: str) -> str:
    ended = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise UnknownBase(ended.stderr.strip())
    return ended.stdout


def _run(command: Sequence[str]) -> int:
    """Run a command and return its status; a run of pytest without tests is none that failed."""
    shown = " ".join([Path(command[0]).name, *command[1:]])
    _say(textwrap.shorten(f"$ {shown}", WIDTH, placeholder=" …"))
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return 0 if "pytest" in command and status == pytest.ExitCode.NO_TESTS_COLLECTED else status


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what changed; return the status of the first check that failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.changed", description=__doc__)
    parser.add_argument("--base", metavar="REV", help="what to compare with")
    parser.add_argument("--list", action="store_true", help="show the test files, run nothing")
    options = parser.parse_args(arguments)
    try:
        base, changed = changed_files(options.base)
    except UnknownBase as error:
        parser.error(str(error))
    shown = base[:12]
    if not changed:
        _say(f"Nothing differs from {shown}.")
        return 0
    file = ROOT / TIMES
    times = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    choice = choose(changed, read_graph(), times)
    files = "file differs" if len(changed) == 1 else "files differ"
    _say(f"{len(changed)} {files} from {shown}:")
    for line in report(changed, choice, times):
        _say(line)
    if options.list:
        for test, steps in choice.run.items():
            _say(f"{steps:3} {cost(test, times):6.1f} s  {test}")
        return 0
    commands = lint(changed)
    if choice.run:
        commands.append(test_command(list(choice.run), times))
    statuses = [_run(command) for command in commands]
    return next(filter(None, statuses), 0)


if __name__ == "__main__":
    sys.exit(main())
