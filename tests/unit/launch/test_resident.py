"""When a driver that stays is restarted. No process is started."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakeload.launch.properties import SparkSettings
from lakeload.launch.resident import OLDEST_SECONDS, SPARE_BYTES, Resident

SETTINGS = SparkSettings("local[2]", "1024m", {}, (Path("a.jar"),))


def outlived(settings: SparkSettings = SETTINGS, **changes: Any) -> bool:
    facts = {"alive": True, "started": time.monotonic(), "memory": SPARE_BYTES} | changes
    resident: Any = Resident(25, lambda: None)
    resident._launcher = SimpleNamespace(settings=SETTINGS)
    found: bool = resident._outlived(SimpleNamespace(**facts), SimpleNamespace(settings=settings))
    return found


def test_driver_stays_with_its_settings_also_when_an_archive_was_built_meanwhile() -> None:
    assert not outlived()
    assert not outlived(replace(SETTINGS, archive=Path("archive.jsa")))


@pytest.mark.parametrize(
    "changes",
    [
        {"alive": False},
        {"started": time.monotonic() - OLDEST_SECONDS - 1},
        {"memory": SPARE_BYTES + (1 << 30) + 1},
        {"settings": replace(SETTINGS, jars=(Path("a.jar"), Path("b.jar")))},
        {"settings": replace(SETTINGS, memory="2048m")},
    ],
    ids=["ended", "old", "large", "more jars", "other heap"],
)
def test_driver_is_restarted_when_it_has_ended_is_old_or_large_or_has_other_settings(
    changes: dict[str, Any],
) -> None:
    assert outlived(**changes)


@pytest.mark.parametrize("alive", [True, False])
def test_forget_reaches_a_driver_that_lives(*, alive: bool) -> None:
    said: list[str] = []
    resident: Any = Resident(25, lambda: None)
    resident.forget()
    resident._driver = SimpleNamespace(alive=alive, forget=lambda: said.append("forget"))
    resident.forget()

    assert said == ["forget"] * alive
