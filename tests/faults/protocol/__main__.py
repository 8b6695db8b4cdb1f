"""`python -m tests.faults.protocol`: a campaign, or one episode again by its class and seed."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

from tests.faults.findings import HEAD, Findings, line
from tests.faults.protocol.campaign import FULL, Settings, Tally, campaign, tally
from tests.faults.protocol.episode import Result, play
from tests.faults.protocol.plan import CLASSES, plan_episode
from tests.faults.protocol.world import SOURCES, isolate, make_world


def main() -> int:
    """Run what the arguments say; 1 when anything was violated."""
    arguments = _parser().parse_args()
    isolate()
    if arguments.seed is not None and arguments.name:
        return _again(arguments)
    seed = arguments.base_seed if arguments.base_seed is not None else secrets.randbelow(10**9)
    names = [arguments.name] if arguments.name else list(FULL)
    targets = {name: max(1, round(FULL[name] * arguments.share)) for name in names}
    settings = Settings(
        seed,
        targets,
        emulators=arguments.emulators,
        lanes=arguments.lanes,
        sources=arguments.sources,
        patience=arguments.patience,
    )
    _say(f"campaign of seed {seed}: {targets}")
    started = time.monotonic()
    tallies: dict[str, Tally] = {}
    violations: list[Result] = []
    shown = started
    for result, tallies in tally(campaign(settings)):
        if result.problems:
            violations.append(result)
            _show(result, sources=arguments.sources)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            done = ", ".join(f"{name} {one.times}/{targets[name]}" for name, one in tallies.items())
            _say(f"{shown - started:5.0f} s: {done}")
    sys.stdout.write(table(tallies) + "\n")
    _say(_counted(tallies))
    _say(f"{time.monotonic() - started:.0f} s, {len(violations)} violations")
    return 1 if violations else 0


def _again(arguments: argparse.Namespace) -> int:
    """Play one episode, as often as asked: timing may matter."""
    bad = 0
    with make_world(lines=8, sources=arguments.sources) as world:
        episode = plan_episode(arguments.name, arguments.seed, glue=True)
        _say(str(episode))
        for _ in range(arguments.times):
            result = play(world, episode)
            _say(f"struck {dict(result.struck)}, told {dict(result.told)}")
            if result.problems:
                bad += 1
                _show(result, sources=arguments.sources)
    _say(f"{bad} of {arguments.times} violated something")
    return 1 if bad else 0


def table(tallies: dict[str, Tally]) -> str:
    """Return the table of a campaign, in the columns of all layers."""
    lines = [
        line(name, one.times, [Findings(one.lost, one.doubled, one.uploads)])
        for name, one in tallies.items()
    ]
    return "\n".join([HEAD, *lines])


def _counted(tallies: dict[str, Tally]) -> str:
    """Return what the table leaves out: how much was done for it."""
    tables = sum(one.episodes for one in tallies.values())
    processes = sum(one.attempts for one in tallies.values())
    counts = "\n".join(
        f"{name}: {', '.join(f'{key} {count}' for key, count in _sum(tallies, name).most_common())}"
        for name in ("struck", "where", "told")
    )
    return f"{tables} tables, {processes} processes\n{counts}"


def _sum(tallies: dict[str, Tally], name: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in tallies.values():
        total += getattr(one, name)
    return total


def _show(result: Result, *, sources: Path) -> None:
    again = f"--class {result.episode.name} --seed {result.episode.seed}"
    _say(f"VIOLATION ({again}; again: python -m tests.faults.protocol {again} --times 5)")
    for problem in result.problems:
        _say(f"  {problem}")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.protocol")
    parser.add_argument("--class", dest="name", choices=sorted(CLASSES), help="this class only")
    parser.add_argument("--seed", type=int, help="with --class: play this episode again")
    parser.add_argument("--times", type=int, default=1, help="with --seed: so often")
    parser.add_argument("--base-seed", type=int, help="the seed of a whole campaign")
    parser.add_argument("--share", type=float, default=1, help="this share of a campaign")
    parser.add_argument("--emulators", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=4, help="episodes at once on an emulator")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="a copy of `sparkjobs`")
    parser.add_argument("--patience", type=int, default=10, help="stop after so many violations")
    return parser


if __name__ == "__main__":
    sys.exit(main())
