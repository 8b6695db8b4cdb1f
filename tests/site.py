"""The documentation site, built, and its search: the script that the browser runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "docs/questions.txt"

_WORKER = """
var self = globalThis, listeners = {}, sent = [], console = {warn() {}, log() {}};
self.addEventListener = (name, listener) => { listeners[name] = listener; };
self.postMessage = message => { sent.push(message); };
"""
"""What the script expects of a web worker."""

_SETUP, _QUERY = 0, 2


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site strictly: a broken link, a missing anchor or a page without a place fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


class Search:
    """The search of a built site. A context manager."""

    def __init__(self, site: Path, without: frozenset[str] = frozenset()) -> None:
        """Start the search of a site, which does not know the questions `without`."""
        from py_mini_racer import MiniRacer

        self._engine: Any = MiniRacer()
        [worker] = (site / "assets/javascripts/workers").glob("search.*.min.js")
        index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
        self._engine.eval(_WORKER)
        text = QUESTIONS.read_text(encoding="utf-8")
        script, kept = (
            worker.read_text(encoding="utf-8"),
            [line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in without],
        )
        assert json.dumps(text) in script
        self._engine.eval(script.replace(json.dumps(text), json.dumps("".join(kept))))
        self._send(_SETUP, {**index, "options": {"suggest": False}})

    def __enter__(self) -> Search:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()

    def pages(self, query: str) -> list[str]:
        """Return the pages that are found, the best first, as paths without `#` and anchor."""
        [message] = self._send(_QUERY, query)
        found = [items[0]["location"] for items in message["data"]["items"]]
        return list(dict.fromkeys(location.partition("#")[0] for location in found))

    def _send(self, kind: int, data: object) -> list[Any]:
        message = json.dumps({"data": {"type": kind, "data": data}})
        self._engine.eval(f"sent.length = 0; listeners.message({message}); 0")
        answers = json.loads(self._engine.eval("JSON.stringify(sent)"))
        assert isinstance(answers, list)
        return answers


def questions() -> list[tuple[str, set[str]]]:
    """Return questions that users type into the search, each with the pages that answer it."""
    lines = (ROOT / "tests/cases/questions.tsv").read_text(encoding="utf-8").splitlines()
    found = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(question, set(pages.split("|"))) for question, pages in found]


def page_questions() -> dict[str, list[str]]:
    """Return the questions by which the search finds a page (docs/questions.txt), of each page."""
    text = QUESTIONS.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith("/"):
            lines = found.setdefault(line, [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found
