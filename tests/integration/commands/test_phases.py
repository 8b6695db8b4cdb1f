"""Signs of life of the commands about loaded tables, before their answer."""

from __future__ import annotations

import pytest

from lakeload.ui.display import Phases
from tests.integration.commands.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["runs", "pipeline.yml"], "reading the history of the tables"),
        (["recover", "pipeline.yml", "--dry-run"], "recovering the tables"),
        (["reset", "pipeline.yml", "orders"], "resetting the tables"),
        (["maintain", "pipeline.yml"], "inspecting tables and their input"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_what_a_command_is_doing_is_shown_until_its_answer(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], last: str
) -> None:
    shown: list[str] = []
    begin, stop = Phases.begin, Phases.stop

    def begins(phases: Phases, phase: str) -> None:
        shown.append(phase)
        begin(phases, phase)

    def stops(phases: Phases) -> None:
        shown.append("")
        stop(phases)

    monkeypatch.setattr(Phases, "begin", begins)
    monkeypatch.setattr(Phases, "stop", stops)

    assert command(*arguments).code == 0
    assert shown[shown.index("") - 1] == last
