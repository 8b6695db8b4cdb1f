"""Figures of the prose: `python -m tests.prose` prints them, `--reflow FILE…` wraps Markdown.

A thermometer, not an aim: docs/style.md says how we write. Tests hold what must stay at zero.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("cli/lakeload", "sparkjobs/lakeload_jobs")
WIDTH = 100

FORBIDDEN = re.compile(
    r"\b(mend(s|ed|ing)?|heals?|healed|nobody|somebody|strangers?|anew|into step|by the letter|"
    r"without a word|for want of|(?<!{)told|lends?|lent|spent)\b",
    re.IGNORECASE,
)
"""Words of the list in docs/style.md that no page and no message uses."""

OUTSIDE = re.compile(
    r"\bDESIGN\b|\bsection \d+\b|(?<!repos/)\bshared/|\b[FP]\d{1,3}\b(?!\d)|\b[BDW]\d{1,2}\b"
)
"""References to documents that are not in the repository."""

_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
_ITEM = re.compile(r"(\s*)([-*]|\d+\.) ")


@dataclass(frozen=True)
class Line:
    """A line of a file that something was found in."""

    path: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.text}"


def pages() -> list[Path]:
    """Return the Markdown pages of the repository."""
    top = (page for page in ROOT.glob("*.md"))
    return sorted([*top, *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])


def prose(page: Path) -> Iterator[Line]:
    """Yield the lines of a page outside of its code blocks."""
    fenced = False
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if text.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield Line(name, number, text)


def long_lines(page: Path) -> list[Line]:
    """Return the lines that are longer than allowed. Tables are, and links may be."""
    return [
        line
        for line in prose(page)
        if len(line.text) > WIDTH
        and not line.text.startswith("|")
        and not (" " not in _LINK.sub("", line.text).strip() or line.text.startswith("#"))
    ]


def messages() -> Iterator[Line]:
    """Yield every text of the product: of modules those that are no docstrings, lines of data."""
    for top in CODE:
        for path in sorted((ROOT / top).rglob("*.*")):
            if path.suffix in (".toml", ".yml", ".jinja"):
                name = path.relative_to(ROOT).as_posix()
                for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    if not text.lstrip().startswith(("#", "{#")):
                        yield Line(name, number, text)
        for path in sorted((ROOT / top).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documentation = {
                id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
            }
            for node in ast.walk(tree):
                if id(node) in documentation or not isinstance(node, ast.Constant):
                    continue
                if isinstance(node.value, str):
                    yield Line(name, node.lineno, node.value)


def errors_without_hint() -> list[Line]:
    """Return where an error that the user can fix is raised without saying how."""
    found = []
    for top in CODE:
        for path in sorted((ROOT / top).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                    continue
                called = ast.unparse(node.exc.func)
                if called not in ("InvalidInput", "MachineNotReady"):
                    continue
                if not any(keyword.arg == "hint" for keyword in node.exc.keywords):
                    name = path.relative_to(ROOT).as_posix()
                    found.append(Line(name, node.lineno, ast.unparse(node.exc)[:WIDTH]))
    return found


def reflow(text: str) -> str:
    """Return Markdown with paragraphs and items wrapped at the width; all else stays."""
    done: list[str] = []
    block: list[str] = []
    fenced = False

    def flush() -> None:
        if not block:
            return
        first = block[0]
        item = _ITEM.match(first)
        indent = item[0] if item else re.match(r"\s*(> )?", first)[0]  # type: ignore[index]
        rest = " " * len(indent) if item else indent
        words = " ".join(
            line.strip().removeprefix("> ") if ">" in indent else line.strip()
            for line in [first[len(indent) :], *block[1:]]
        )
        done.extend(_wrapped(words, indent, rest))
        block.clear()

    for line in text.splitlines():
        stripped = line.lstrip()
        if stripped.startswith("```"):
            flush()
            fenced = not fenced
            done.append(line)
        elif fenced or not stripped or stripped.startswith(("|", "#", "<", "[^", "---")):
            flush()
            done.append(line)
        elif _ITEM.match(line):
            flush()
            block.append(line)
        elif block and line.endswith("  "):
            block.append(line)
            flush()
        else:
            block.append(line)
    flush()
    return "\n".join(done) + "\n"


_SPACE = "\N{NO-BREAK SPACE}"


def _wrapped(words: str, first: str, rest: str) -> list[str]:
    # A span of code and the text of a link stay on one line: Markdown allows breaks, readers of
    # the source and tests that search for a command do not.
    kept = re.sub(r"`[^`]*`", lambda match: match[0].replace(" ", _SPACE), words)
    lines = textwrap.wrap(
        kept,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    found = [line.replace(_SPACE, " ") for line in lines]
    # A line that begins like a list or a heading would become one.
    for i in range(1, len(found)):
        if re.match(r"([-*+#>|]|\d+\.)\s", found[i].strip()):
            head, _, last = found[i - 1].rpartition(" ")
            found[i - 1], found[i] = head, f"{rest}{last} {found[i].strip()}"
    return found


def main(arguments: list[str]) -> None:
    """Print the figures, or wrap the files that are named."""
    if arguments[:1] == ["--reflow"]:
        for name in arguments[1:]:
            path = Path(name)
            path.write_text(reflow(path.read_text(encoding="utf-8")), encoding="utf-8")
        return
    everything = [line for page in pages() for line in prose(page)]
    words = sum(len(line.text.split()) for line in everything)
    texts = list(messages())
    print(f"pages {len(pages())}, words {words:,}")  # noqa: T201
    print(f"you {1000 * _count(r'you(r|rs)?', everything) / words:.1f} per 1,000")  # noqa: T201
    print(f"semicolons {1000 * sum(line.text.count(';') for line in everything) / words:.1f}")  # noqa: T201
    print(f"forbidden words in pages {sum(bool(FORBIDDEN.search(x.text)) for x in everything)}")  # noqa: T201
    print(f"forbidden words in messages {sum(bool(FORBIDDEN.search(x.text)) for x in texts)}")  # noqa: T201
    print(f"lines over {WIDTH} {sum(len(long_lines(page)) for page in pages())}")  # noqa: T201
    print(f"references to the outside {sum(bool(OUTSIDE.search(x.text)) for x in everything)}")  # noqa: T201
    print(f"errors without a hint {len(errors_without_hint())}")  # noqa: T201


def _count(pattern: str, lines: list[Line]) -> int:
    return sum(len(re.findall(rf"\b{pattern}\b", line.text, re.IGNORECASE)) for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
