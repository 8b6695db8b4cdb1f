"""Some twenty of the first layer's runs at each change: `make faults` makes thousands."""

from __future__ import annotations

import secrets

from tests.faults.protocol.campaign import Settings, campaign, tally

FEW = {
    "kill": 8,
    "status": 3,
    "lost": 2,
    "duplicate": 1,
    "delay": 1,
    "truncate": 1,
    "zombie": 2,
    "expired": 1,
    "together": 2,
    "together-faults": 2,
}


def test_protocol_under_faults_keeps_each_committed_row_once() -> None:
    seed = secrets.randbelow(10**9)
    again = f"python -m tests.faults.protocol --base-seed {seed} --share 0.005"
    problems = []
    times = 0
    for result, tallies in tally(campaign(Settings(seed, FEW, emulators=1, lanes=6))):
        problems += [(result.episode.name, result.episode.seed, text) for text in result.problems]
        times = sum(one.times for one in tallies.values())
    assert problems == [], again
    assert times >= sum(FEW.values())
