"""Problems of documents, as a compiler shows them and as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from lakeload.config.problems import Problem, Severity, SourceLines
from lakeload.config.secret_names import printable
from lakeload.ui.json_documents import ProblemDocument
from lakeload_jobs.contract.errors import docs_link

_STYLES: dict[Severity, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
}
MAX_WIDTH = 100
_SHOWN = 100
_HARD_SPACE = "\N{NO-BREAK SPACE}"


def problems_text(problems: Sequence[Problem], width: int) -> Text:
    """Return the problems one below the other, at most 100 of them, wrapped at `width`."""
    width = min(width, MAX_WIDTH)
    parts = [problem_text(problem, width) for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        parts.append(Text(f"… and {len(problems) - _SHOWN} more"))
    return Text("\n\n").join(parts)


def problem_text(problem: Problem, width: int) -> Text:
    """Return one problem: what, where, the line with a caret, and what to do."""
    style = _STYLES[problem.severity]
    text = Text()
    text.append(f"{problem.severity}:", style)
    first = len(problem.severity) + 2
    text.append(wrapped(problem.message, width, " " * first, " " * 4)[first - 1 :], "bold")
    gutter = max((len(str(snippet.line)) for snippet in problem.snippets), default=1)
    text.append(f"\n{'':{gutter}}--> ", "blue")
    text.append(position(problem))
    for i, snippet in enumerate(problem.snippets):
        is_main = i == len(problem.snippets) - 1
        _append_snippet(text, snippet, gutter, width, style if is_main else "blue", is_main)
    if problem.hint:
        _append_hint(text, problem.hint, gutter, width)
    return text


def position(problem: Problem) -> str:
    """Return `FILE:LINE:COLUMN`, or the file alone."""
    path = printable(problem.path)
    return f"{path}:{problem.line}:{problem.column}" if problem.line else path


def summary(problems: Sequence[Problem]) -> str:
    """Return `2 errors, 1 warning`."""
    counts = [
        (sum(problem.severity == severity for problem in problems), severity)
        for severity in _STYLES
    ]
    return ", ".join(
        f"{count} {severity}" + ("" if count == 1 else "s") for count, severity in counts if count
    )


def problems_json(problems: Sequence[Problem]) -> list[ProblemDocument]:
    """Return the problems as the documented JSON objects; fields are only ever added."""
    return [
        {
            "severity": problem.severity,
            "code": problem.code,
            "file": problem.path,
            "line": problem.line or None,
            "column": problem.column or None,
            "length": problem.length or None,
            "key": problem.key or None,
            "message": problem.message,
            "hint": problem.hint,
            "docs": docs_link(problem.code),
        }
        for problem in problems
    ]


def _append_snippet(
    text: Text, snippet: SourceLines, gutter: int, width: int, style: str, is_main: bool
) -> None:
    line, start, length = _window(snippet, width - gutter - 4)
    text.append(f"\n {snippet.line:>{gutter}} | ", "blue")
    text.append(line)
    text.append(f"\n {'':{gutter}} | ", "blue")
    text.append(" " * cell_len(line[:start]))
    marked = max(1, cell_len(line[start : start + length]))
    text.append(("^" if is_main else "-") * marked, style)
    if snippet.label:
        text.append(f" {snippet.label}", style)


def _window(snippet: SourceLines, width: int) -> tuple[str, int, int]:
    """Cut a long line to the part around what is marked."""
    line, start, length = snippet.text, snippet.column - 1, snippet.length
    if cell_len(line) <= width:
        return line, start, length
    width = max(width, 20)
    first = 0 if start + min(length, width // 2) < width - 1 else max(0, start - width // 3)
    left, right = ("…" if first else ""), "…"
    shown = line[first:]
    while cell_len(left + shown) > width - (1 if first + len(shown) < len(line) else 0):
        shown = shown[:-1]
    if first + len(shown) >= len(line):
        right = ""
    start = start - first + len(left)
    return left + shown + right, start, min(length, len(left + shown) - start)


def _append_hint(text: Text, hint: str, gutter: int, width: int) -> None:
    """Lines of a hint are wrapped, but for indented ones: those are text to copy."""
    head = f" {'':{gutter}} = hint: "
    rest = " " * len(head)
    for i, line in enumerate(hint.split("\n")):
        text.append("\n")
        text.append(rest if i else head, "blue")
        if line.startswith(" "):
            text.append(line)
        else:
            text.append(wrapped(line, width, rest, rest + "  " * (i > 0))[len(rest) :])


def wrapped(text: str, width: int, first: str, rest: str) -> str:
    """Wrap between words, but not within backticks."""
    kept = re.sub(r"`[^`]*`", lambda match: match[0].replace(" ", _HARD_SPACE), text)
    lines = textwrap.wrap(
        kept,
        max(width, 40),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines or [first]).replace(_HARD_SPACE, " ")
