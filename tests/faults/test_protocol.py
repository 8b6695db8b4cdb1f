"""Fifty of the first layer's runs at each change: `make faults` makes thousands."""

from __future__ import annotations

import secrets

from tests.faults.protocol.campaign import Settings, campaign, tally

FIFTY = {
    "kill": 18,
    "status": 7,
    "lost": 5,
    "duplicate": 3,
    "delay": 1,
    "truncate": 2,
    "zombie": 4,
    "expired": 2,
    "together": 4,
    "together-faults": 4,
}


def test_protocol_under_faults_keeps_each_committed_row_once() -> None:
    seed = secrets.randbelow(10**9)
    again = f"python -m tests.faults.protocol --base-seed {seed} --share 0.01"
    problems = []
    times = 0
    for result, tallies in tally(campaign(Settings(seed, FIFTY, emulators=1, lanes=6))):
        problems += [(result.episode.name, result.episode.seed, text) for text in result.problems]
        times = sum(one.times for one in tallies.values())
    assert problems == [], again
    assert times >= 50
