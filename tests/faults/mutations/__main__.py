"""`python -m tests.faults.mutations`: run the mutations that the code's changes touch, record them.

With LAKELOAD_TEST_EXHAUSTIVE=1 all run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults.mutations.proven import fingerprints, read_proven, record


class Verdicts:
    """A plugin of pytest: which mutations ran, and whether their tests noticed."""

    def __init__(self) -> None:
        self.noticed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a mutation's test, which has its name in brackets."""
        _, bracket, name = report.nodeid.removesuffix("]").rpartition("[")
        if bracket:
            self.noticed[name] = self.noticed.get(name, True) and report.passed


def recorded(
    proven: dict[str, str], current: dict[str, str], noticed: dict[str, bool]
) -> dict[str, str]:
    """Return what is proven after a run: not what failed, nor what is no mutation any more."""
    passed = {name: current[name] for name, good in noticed.items() if good}
    failed = {name for name, good in noticed.items() if not good}
    return {
        name: value
        for name, value in {**proven, **passed}.items()
        if name in current and name not in failed
    }


def main() -> int:
    """Run and record; return pytest's status."""
    current = fingerprints()
    verdicts = Verdicts()
    tests = Path(__file__).with_name("test_mutations.py")
    status = pytest.main(["-q", str(tests)], plugins=[verdicts])
    proven = recorded(read_proven(), current, verdicts.noticed)
    record(proven)
    left = sum(proven.get(name) != fingerprint for name, fingerprint in current.items())
    sys.stdout.write(f"mutations: {len(current) - left} recorded in proven.json, {left} not\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
