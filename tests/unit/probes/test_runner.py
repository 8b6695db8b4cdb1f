"""The order, the dependencies and the time-out of probes."""

from __future__ import annotations

import ast
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from string import Formatter

import pytest

from lakeload.checks import CheckStatus
from lakeload.probes import runner
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import (
    Deadline,
    Level,
    Probe,
    ProbeFailed,
    ProbeResult,
    run_probes,
    within,
)
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec


def _fails() -> str:
    raise ProbeFailed("it is wrong", code="Wrong", hint="mend it")


def _probe(
    name: str,
    run: Callable[[], str] = lambda: "",
    needs: tuple[str, ...] = (),
    level: Level = Level.REQUIRED,
    beside_the_point: str = "",
) -> Probe:
    return Probe(
        name=name,
        proves=f"{name} works",
        level=level,
        action="s3:Some",
        resource="arn",
        run=run,
        explain=lambda error: ("a cause",),
        needs=needs,
        beside_the_point=beside_the_point,
    )


def _statuses(results: list[ProbeResult]) -> dict[str, str]:
    return {result.probe.name: str(result.status) for result in results}


def test_a_failed_probe_skips_its_dependents_and_theirs_and_nothing_else() -> None:
    probes = [
        _probe("a", _fails),
        _probe("b", needs=("a",)),
        _probe("c", needs=("b",)),
        _probe("d"),
    ]
    results = list(run_probes(probes, Deadline(5)))
    assert _statuses(results) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "passed"}
    assert [result.detail for result in results] == ["", "needs `a`", "needs `b`", ""]


def test_a_failure_of_a_useful_or_safety_probe_is_a_warning() -> None:
    probes = [_probe("u", _fails, level=Level.USEFUL), _probe("s", _fails, level=Level.SAFETY)]
    assert _statuses(list(run_probes(probes, Deadline(5)))) == {"u": "warning", "s": "warning"}


def test_check_skipped_by_option_or_unneeded_counts_as_passed() -> None:
    probes = [
        _probe("a", _fails),
        _probe("b", _fails, beside_the_point="no role"),
        _probe("c", needs=("a", "b")),
    ]
    results = list(run_probes(probes, Deadline(5), skip={"a"}))
    assert _statuses(results) == {"a": "skipped", "b": "skipped", "c": "passed"}
    assert [result.detail for result in results[:2]] == ["skipped by --skip", "no role"]


def test_a_failure_carries_code_causes_and_hint() -> None:
    (result,) = run_probes([_probe("a", _fails)], Deadline(5))
    assert result.failure is not None
    assert (result.failure.code, result.failure.status) == ("Wrong", None)
    assert (result.failure.causes, result.failure.hint) == (("a cause",), "mend it")


def test_check_beyond_the_deadline_ends_and_later_checks_do_not_start() -> None:
    never, started = threading.Event(), []

    def stuck() -> str:
        never.wait()
        return ""

    def too_late() -> str:
        time.sleep(0.2)
        started.append("late")
        return ""

    begun = time.monotonic()
    results = list(run_probes([_probe("a", stuck), _probe("b", too_late)], Deadline(0.3)))
    assert time.monotonic() - begun < 1
    assert [result.failure and result.failure.code for result in results] == ["TimedOut"] * 2
    never.set()


def test_time_spent_waiting_on_purpose_moves_the_deadline() -> None:
    deadline = Deadline(0.2)

    def waits() -> str:
        deadline.extend(0.5)
        time.sleep(0.4)
        return "waited"

    assert within(waits, deadline) == "waited"


def test_bug_in_a_check_is_raised() -> None:
    def bug() -> str:
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(run_probes([_probe("a", bug)], Deadline(5)))


def test_an_unknown_probe_to_skip_gets_a_suggestion() -> None:
    options = ConnectionOptions(skip=frozenset({"list-upload"}))
    with pytest.raises(InvalidInput) as caught:
        ConnectionTest(DestinationSpec("bucket", "us-east-1"), options)
    assert caught.value.hint == "did you mean `list-uploads`?"


def test_statuses_and_levels_have_the_names_the_json_promises() -> None:
    assert [str(s) for s in CheckStatus] == ["passed", "warning", "failed", "skipped"]
    assert [str(level) for level in Level] == ["required", "useful", "safety"]


def test_every_failure_gets_the_values_that_its_text_names() -> None:
    folder = Path(runner.__file__).parent
    texts = tomllib.loads((folder / "failures.toml").read_text("utf-8"))
    named: dict[str, set[str]] = {}
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "failed":
                values = {keyword.arg or "" for keyword in node.keywords}
                assert named.setdefault(ast.literal_eval(node.args[0]), values) == values
    fields = {
        name: {field for text in row.values() for _, field, *_ in Formatter().parse(text) if field}
        for name, row in texts.items()
    }
    assert named == fields
