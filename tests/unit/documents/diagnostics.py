"""What `validate` says about the documents of tests/cases/invalid, as their .txt files hold it.

`python -m tests.unit.documents.diagnostics` writes those files again: read the difference.
"""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path

from lakeload.config.problems import Problem
from lakeload.documents.load import check
from lakeload.ui.problems import problems_text, summary

INVALID = Path(__file__).parents[2] / "cases" / "invalid"
ENVIRONMENT = {"BAD_BUCKET": "Not_A_Bucket", "BAD_NUMBER": "many", "PADDED_SECRET": " padded\n"}
WIDTH = 80


@cache
def problems(name: str) -> list[Problem]:
    """Return the problems of `tests/cases/invalid/NAME.yaml`, seen from within that folder."""
    with contextlib.chdir(INVALID):
        return check([Path(f"{name}.yaml")], ENVIRONMENT)


@cache
def diagnostics(name: str) -> str:
    """Return the text for `tests/cases/invalid/NAME.yaml`."""
    text = problems_text(problems(name), WIDTH).plain
    return f"{text}\n\n{summary(problems(name))}\n"


def main() -> None:
    """Write every .txt file."""
    for path in sorted(INVALID.glob("*.yaml")):
        path.with_suffix(".txt").write_text(diagnostics(path.stem), encoding="utf-8")


if __name__ == "__main__":
    main()
