"""Signs of life while a command reads its documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.ui.display import Phases
from tests.unit.commands.command import lakeload


@pytest.mark.parametrize(
    "command",
    ["sync", "plan", "runs", "recover --dry-run", "reset", "maintain", "test-connection"],
)
def test_documents_are_read_while_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shown: list[bool] = []
    start = Phases.start

    def starts(phases: Phases) -> None:
        shown.append(True)
        start(phases)

    monkeypatch.setattr(Phases, "start", starts)
    name, *flags = command.split()
    tables = ["orders"] if name == "reset" else []

    done = lakeload(name, "missing.yml", *tables, *flags, folder=tmp_path)

    assert "missing.yml" in done.stderr
    assert shown
