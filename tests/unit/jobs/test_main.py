"""Which job a spec file names."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from lakeload_jobs.jobs import attempt as main


@pytest.mark.parametrize(
    ("text", "job"),
    [
        (json.dumps({"job": "maintain"}), "maintain"),
        (json.dumps({"job": "load"}), "load"),
        (json.dumps({"contract": 1}), "load"),
        (json.dumps({"job": "os"}), "load"),
        ("[]", "load"),
        ("no JSON", "load"),
        (None, "load"),
    ],
)
def test_the_job_of_a_spec_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, job: str
) -> None:
    path = tmp_path / "spec.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    asked: list[str] = []

    def module(name: str) -> types.SimpleNamespace:
        asked.append(name)
        return types.SimpleNamespace(main=lambda given: len(given))

    monkeypatch.setattr("importlib.import_module", module)
    assert main.main(str(path)) == len(str(path))
    assert asked == [f"lakeload_jobs.jobs.{job}"]
