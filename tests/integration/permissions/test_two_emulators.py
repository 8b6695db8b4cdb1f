"""Two independent emulators: the same verdict wherever both can express the case.

Where they differ, the difference is known, with its reason: known_differences.toml.
"""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from tests.integration.permissions.emulators import CASES, Case, Emulator, Place
from tests.servers.ministack import AwsServer
from tests.servers.moto import MotoServer

DIFFERENCES: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("known_differences.toml").read_text(encoding="utf-8")
)


def _verdict(case: Case, emulator: Emulator, folder: Path) -> dict[str, str]:
    """Return what becomes of each probe: its status, and the code of a failure."""
    folder.mkdir()
    place = Place(emulator, folder)
    case.bend(place)
    if case.enforced:
        with emulator.enforcing():
            return _ask(place, case.about)
    return _ask(place, case.about)


def _ask(place: Place, about: tuple[str, ...]) -> dict[str, str]:
    test = ConnectionTest(place.destination, ConnectionOptions(timeout=60))
    names = frozenset(probe.name for probe in test.probes if probe.name.startswith(about))
    test = ConnectionTest(place.destination, ConnectionOptions(timeout=60, only=names))
    for _ in test.run():
        pass
    return {
        r.probe.name: f"{r.status} {r.failure.code}" if r.failure else str(r.status)
        for r in test.verdict().results
    }


# What they agree on changes with their versions, and not with our code: the verdicts themselves
# are tested in tests/integration/probes.
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_emulators_agree_except_for_known_differences(
    case: Case, exact_aws: AwsServer, moto: MotoServer, tmp_path: Path
) -> None:
    ministack = Emulator("ministack", exact_aws.endpoint)
    other = Emulator("moto", moto.endpoint, moto.enforcing)
    first = _verdict(case, ministack, tmp_path / "ministack")
    second = _verdict(case, other, tmp_path / "moto")
    assert first.keys() == second.keys()
    found = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
    known = [one for one in DIFFERENCES["probes"] if _any(one["cases"], case.name)]
    explained = [
        (name, one["reason"])
        for name, answers in found.items()
        for one in known
        if _fits(name, one["probe"])
        and _fits(answers[0], one["ministack"])
        and _fits(answers[1], one["moto"])
    ]
    assert {name for name, _ in explained} == set(found), found
    assert {reason for _, reason in explained} == {one["reason"] for one in known}, "still so"


def _any(patterns: list[str], text: str) -> bool:
    return any(_fits(text, pattern) for pattern in patterns)


_fits = fnmatch.fnmatchcase


def test_every_known_difference_has_a_reason_and_a_case() -> None:
    for one in DIFFERENCES["probes"]:
        assert one["reason"]
        assert all(any(_fits(case.name, name) for case in CASES) for name in one["cases"])
