"""The text of one document: read within limits, shown without its secrets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from lakeload.config.problems import Problem, Severity, SourceLines
from lakeload.config.secret_names import MASK, REFERENCE_KINDS, looks_secret, masked
from lakeload.config.yaml_tree import MAX_BYTES, Span
from lakeload_jobs.core.names import did_you_mean

_KEY_OF_LINE = re.compile(r"[\s,{\-]*([\"']?)([A-Za-z_][\w.-]*)\1\s*:")
# It begins at the beginning of a word only: a line of a million letters is searched once.
_KEYS_IN_LINE = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]*)[\"']?[ \t]{0,9}:[ \t]{0,9}(?=\S)")
_TAB = "    "
_LONGEST_SHOWN = 600
_NOWHERE = -1


class Unreadable(Exception):
    """The file cannot be read as a document; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class Page:
    """A document's path as it is shown, its lines, and the stretches that are never shown."""

    path: str
    text: str
    hidden: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = self.text.splitlines() or [""]

    def problem(
        self,
        severity: Severity,
        code: str,
        message: str,
        span: Span | None,
        *,
        hint: str | None = None,
        key: str = "",
        label: str = "",
        before: tuple[tuple[Span, str], ...] = (),
    ) -> Problem:
        """Build a problem at `span`; `before` are labelled stretches that explain it."""
        if span is None:
            return Problem(severity, code, message, self.path, hint=hint, key=key)
        line, first, last = self._on_one_line(span)
        snippets = (*(self.snippet(*item) for item in before), self.snippet(span, label))
        length = max(1, last - first)
        return Problem(
            severity, code, message, self.path, line + 1, first + 1, length, hint, key, snippets
        )

    def snippet(self, span: Span, label: str = "") -> SourceLines:
        """Return the line where `span` begins, as it may be shown."""
        line, first, last = self._on_one_line(span)
        text = self.lines[line] if line < len(self.lines) else ""
        stretches = [*self._hidden_in(line, len(text)), *_suspicious(text)]
        cut = max(0, first - _LONGEST_SHOWN // 2) if len(text) > _LONGEST_SHOWN else 0
        part = text[cut : cut + _LONGEST_SHOWN]
        within = [(max(0, a - cut), min(b - cut, len(part))) for a, b in stretches]
        shown, places = _hide(part, within)
        start = places[min(first - cut, len(part))]
        end = places[min(max(last - cut, 0), len(part))]
        if cut:
            shown, start, end = f"…{shown}", start + 1, end + 1
        return SourceLines(line + 1, shown, start + 1, max(1, end - start), label)

    def hide_suspicious(self) -> None:
        """Hide what follows any key that looks secret; for text that is not valid YAML.

        Such text has no tree that would tell what belongs to which key, so lines below a secret
        key are hidden until a key stands as far left as the secret one.
        """
        secret_at = _NOWHERE
        for number, line in enumerate(self.lines):
            indent = len(line) - len(line.lstrip())
            key = _KEY_OF_LINE.match(line)
            name = key[2] if key else None
            if name is not None and (indent <= secret_at or secret_at == _NOWHERE):
                secret_at = indent if _holds_secret(name) else _NOWHERE
            elif secret_at != _NOWHERE and line.strip() and name not in REFERENCE_KINDS:
                self.hidden.append(Span(number, 0, number, len(line)))
            for found in _KEYS_IN_LINE.finditer(line):
                if _holds_secret(found[1]):
                    self.hidden.append(Span(number, found.end(), number, len(line)))
                    break

    def _on_one_line(self, span: Span) -> tuple[int, int, int]:
        line = min(span.line, len(self.lines) - 1)
        text = self.lines[line]
        if line < span.line:
            return line, len(text), len(text) + 1
        end = span.end_column if span.end_line == span.line else len(text.rstrip())
        return line, span.column, max(end, span.column + 1)

    def _hidden_in(self, line: int, length: int) -> list[tuple[int, int]]:
        return [
            (
                span.column if span.line == line else 0,
                span.end_column if span.end_line == line else length,
            )
            for span in self.hidden
            if span.line <= line <= span.end_line and not span.empty
        ]


def _hide(text: str, stretches: list[tuple[int, int]]) -> tuple[str, list[int]]:
    """Return the text with stretches masked, and for each old column its new one."""
    hidden = {column for start, end in stretches for column in range(start, end)}
    shown = ""
    places: list[int] = []
    for column, char in enumerate(text):
        if column in hidden and column - 1 in hidden:
            places.append(places[-1])
            continue
        places.append(len(shown))
        shown += MASK if column in hidden else _visible(char)
    return shown, [*places, len(shown)]


def _suspicious(text: str) -> list[tuple[int, int]]:
    """Return where masked() would change the text."""
    if masked(text) == text:
        return []
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
    return [(start, end) for start, end in words if masked(text[start:end]) != text[start:end]]


def _visible(char: str) -> str:
    if char == "\t":
        return _TAB
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def read_page(path: Path) -> Page:
    """Read a UTF-8 file of at most 1 MiB. Raises `Unreadable`."""
    shown = str(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > MAX_BYTES else file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(_unreadable(path, error)) from error
    if max(size, len(data)) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES >> 20} MiB and was not read"
        raise Unreadable(
            Problem("error", "too-large", message, shown, hint="check that this is the right file")
        )
    try:
        return Page(shown, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(_not_utf8(shown, data, error)) from error


def _unreadable(path: Path, error: OSError) -> Problem:
    reason = (error.strerror or type(error).__name__).lower()
    hint: str | None = None
    if isinstance(error, FileNotFoundError):
        folder = path.parent
        hint = _missing_folder(folder)
        if folder.is_dir():
            hint = did_you_mean(path.name, [file.name for file in folder.glob("*.y*ml")])
    return Problem(
        "error", "unreadable", f"the file cannot be read: {reason}", str(path), hint=hint
    )


def _missing_folder(folder: Path) -> str:
    """Say that a folder is missing, and which one beside it has nearly its name."""
    said = f"the folder `{folder}` does not exist"
    above = folder.parent
    if not above.is_dir():
        return said
    near = did_you_mean(folder.name, [file.name for file in above.iterdir() if file.is_dir()])
    return f"{near} {said}" if near else said


def _not_utf8(shown: str, data: bytes, error: UnicodeDecodeError) -> Problem:
    before = data[: error.start]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return Problem(
        "error",
        "not-utf-8",
        f"the byte 0x{data[error.start]:02X} is not UTF-8 text",
        shown,
        line,
        column,
        1,
        hint="save the file as UTF-8",
    )


def _holds_secret(key: str) -> bool:
    """Whether a key is, or may hold, a secret: `notify` has the URL of a webhook."""
    return looks_secret(key) or key == "notify"
