"""`python -m tests.faults.inputs`: hostile inputs for some minutes. Exit code 1 with findings."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter

from tests.faults.inputs import watch
from tests.faults.inputs.targets import TARGETS
from tests.faults.inputs.watch import Case, run_cases

_ROUND = 200
"""Cases of one target before the next one has its turn."""
_SHOWN = 1
"""Findings of one place that are shown."""


def main() -> int:
    """Run all targets in turns until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.inputs")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--only", nargs="*", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--times", type=int, help="cases of each target, in place of minutes")
    parser.add_argument("--seconds", type=float, default=watch.SECONDS, help="of one case at most")
    given = parser.parse_args()
    watch.SECONDS = given.seconds
    _say(f"seed {given.seed}")
    done: Counter[str] = Counter()
    findings: list[Case] = []
    end = time.monotonic() + 60 * given.minutes
    seed = given.seed
    while time.monotonic() < end:
        for target in given.only:
            for case in run_cases(target, seed, given.times or _ROUND):
                done[target] += 1
                if case.finding:
                    findings.append(case)
                    _show(case, findings)
        seed += _ROUND
        if given.times:
            break
    for target in given.only:
        bad = sum(case.target == target for case in findings)
        _say(f"{target:20} {done[target]:10,} inputs {bad:6,} findings")
    return 1 if findings else 0


def _show(case: Case, findings: list[Case]) -> None:
    alike = sum(_place(one) == _place(case) for one in findings)
    if alike <= _SHOWN:
        again = f"python -m tests.faults.inputs --only '{case.target}' --seed {case.seed} --times 1"
        _say(f"FOUND by {again}\n{case.finding[-1500:]}")


def _place(case: Case) -> str:
    """Return the last line of code that a finding names, or all of it."""
    lines = [line for line in case.finding.splitlines() if line.startswith("  File ")]
    return lines[-1] if lines else case.finding


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
