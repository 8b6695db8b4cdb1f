"""The commands that these tests start are forked."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def commands(forked_commands: None) -> None:
    """Give `tests.unit.commands.command.lakeload` the Python whose processes are forked."""
