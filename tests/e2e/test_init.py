"""The questions of `lakeload init` at a terminal, as its user sees them."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

from lakeload.documents.load import load_pipeline


def test_init_on_a_terminal_prompts(tmp_path: Path, forked_python: str) -> None:
    answers = ["my-data-lake", "us-east-1", "", "", "", "si", "y", "", "data/o.csv", "", "", ""]

    code, screen = at_a_terminal(["init", "lake"], answers, tmp_path, forked_python)

    assert code == 0, screen
    assert "S3 bucket: " in screen
    assert "Register the tables in AWS Glue, for Athena [YES/NO] (NO): " in screen
    assert "`si` is not a choice" in screen
    assert "First part of Glue database names (supaflow): " in screen
    document = load_pipeline(tmp_path / "lake" / "pipeline.yml", {})
    assert document.destination.model.glue_database_prefix == "supaflow"


def test_init_prompt_misspelled_region_is_repeated(tmp_path: Path, forked_python: str) -> None:
    answers = ["my-data-lake", "us-esat-1", "us-east-1", "\x04"]

    code, screen = at_a_terminal(["init", "lake"], answers, tmp_path, forked_python)

    assert code == 2, screen
    assert "did you mean `us-east-1`?" in screen
    assert screen.index("did you mean") < screen.index("Path below the bucket")


def test_init_no_input_prompts_nothing(tmp_path: Path, forked_python: str) -> None:
    code, screen = at_a_terminal(["init", "--no-input"], [], tmp_path, forked_python)

    assert code == 2
    assert "`--bucket`" in screen


def test_init_input_that_ends_early_writes_nothing(tmp_path: Path, forked_python: str) -> None:
    code, screen = at_a_terminal(["init"], ["my-data-lake", "\x04"], tmp_path, forked_python)

    assert code == 2, screen
    assert "the input ended at the question for `--region`" in " ".join(screen.split())
    assert list(tmp_path.iterdir()) == []


def at_a_terminal(
    arguments: list[str], answers: list[str], folder: Path, python: str
) -> tuple[int, str]:
    """Run lakeload at a terminal of 80 columns, answer its questions, return code and screen."""
    ours, theirs = pty.openpty()
    command = [python, "-m", "lakeload", *arguments]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen, left, deadline = "", list(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            screen += os.read(ours, 65536).decode() if ready else ""
        except OSError:
            break
        if left and screen.endswith(": "):
            answer = left.pop(0)
            screen += "\n"
            os.write(ours, answer.encode() if answer == "\x04" else f"{answer}\n".encode())
    os.close(ours)
    return process.wait(timeout=30), re.sub(r"\x1b\[[0-9;]*m", "", screen)
