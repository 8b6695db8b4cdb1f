"""Figures of the prose: `python -m tests.prose` prints them, `--reflow FILE…` wraps Markdown.

`--counts FOLDER` prints those of another checkout, `--pages` those of each page. They are a
thermometer, not an aim: docs/style.md says how we write. Tests hold what must stay at zero.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tokenize
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

NOT_IN_MESSAGES = re.compile(
    r"\b(?:tells?|asks|asking|answer(?:s|ed|ing)?|in step|refus(?:e|es|ed|al)|speaks|died|"
    r"(?:dead|killed) (?:runs?|loads?|attempts?)|a look|looks? (?:at|for|into)|looking|lies|"
    r"goes on|once more|everybody|anybody|whoever)\b",
    re.IGNORECASE,
)
"""Further words that no message uses: there is a standard term for each."""

OUTSIDE = re.compile(
    r"\bDESIGN\b|\bsection \d+\b|(?<!repos/)\bshared/|\b[FP]\d{1,3}\b(?!\d)|\b[BDW]\d{1,2}\b"
)
"""References to documents that are not in the repository."""

INDIRECT = r"(?:what|who|whose|whom|whoever|whatever|whether|nobody|somebody|anybody)"
"""Words of indirect clauses and of unnamed actors."""

QUESTION = re.compile(r"(?:What|Who|Whose|How|Whether|Where|When|Why|Which)\b")
"""How a docstring begins that is an indirect question."""

DELICATE = re.compile(
    r"(?:iceberg/(?:load/)?(?:publish|branches|opening|stage|write)|(?:formats/parquet|lake)/(?:log/)?"
    r"(?:publish|placing|settle|roll_forward|recovery|table_log|commit_log|stale_uploads|reset|admission)"
    r"|parquet/(?:load/)?(?:stage|write)|launch/(?:process|stop)|storage/objects"
    r"|lake/conditional_writes)\.py$"
)
"""Modules of publish, append, recovery, staging and process handling, in today's and "
  "former layout."""

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


def forbidden_messages() -> list[Line]:
    """Return the texts with a word that docs/style.md forbids. Identifiers are not texts."""
    return [
        line
        for line in messages()
        if FORBIDDEN.search(line.text)
        or (" " in line.text.strip() and NOT_IN_MESSAGES.search(line.text))
    ]


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


def docstrings(root: Path) -> Iterator[Line]:
    """Yield the first line of each module's docstring."""
    for top in CODE:
        for path in sorted((root / top).rglob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            if text:
                yield Line(path.relative_to(root).as_posix(), 1, text.splitlines()[0])


def comment_density(root: Path) -> tuple[int, int]:
    """Return the `#` comments of the delicate modules, and their lines."""
    comments = lines = 0
    for top in CODE:
        for path in sorted((root / top).rglob("*.py")):
            if DELICATE.search(path.as_posix()):
                with path.open("rb") as file:
                    kinds = [token.type for token in tokenize.tokenize(file.readline)]
                comments += kinds.count(tokenize.COMMENT)
                lines += len(path.read_text(encoding="utf-8").splitlines())
    return comments, lines


def _text(page: Path) -> str:
    """Return the prose of a page: without code, tables, comments and the targets of links."""
    kept, fenced = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "<!--")):
            kept.append(line)
    text = re.sub(r"`[^`]*`", "CODE", "\n".join(kept))
    return re.sub(r"\]\([^)]*\)", "]", text)


def _figures(text: str) -> tuple[float, float, float]:
    """Return indirect words, semicolons and "you" per 1,000 words."""
    size = max(1, len(text.split())) / 1000
    patterns = (rf"\b{INDIRECT}\b", ";", r"\byou(?:r|rs)?\b")
    indirect, semicolons, you = (len(re.findall(p, text, re.IGNORECASE)) / size for p in patterns)
    return indirect, semicolons, you


def counts(root: Path) -> Iterator[str]:
    """Yield the figures of a checkout, one a line: docs, decisions, docstrings, comments, "
    "README."""
    readme = root / "README.md"
    pages_of = sorted((root / "docs").glob("**/*.md"))
    groups = {
        "docs": [*(path for path in pages_of if "decisions" not in path.parts), readme],
        "decisions": [path for path in pages_of if "decisions" in path.parts],
    }
    for name, group in groups.items():
        text = "\n".join(_text(page) for page in group if page.name != "style.md")
        indirect, semicolons, you = _figures(text)
        yield (
            f"{name}: {len(text.split()):,} words, per 1,000: {indirect:.1f} "
            f"what/who/whether/nobody, {semicolons:.1f} semicolons, {you:.1f} you"
        )
    dangling = re.compile(r"\bDESIGN\b|(?<![\w.])[FPB]\d{1,2}\b(?!\.)")
    found = 0
    for path in [
        *(p for top in (*CODE, "docs", "tests") for p in (root / top).rglob("*.*")),
        readme,
    ]:
        if path.suffix in (".py", ".md") and path.name not in ("prose.py", "test_prose.py"):
            lines = path.read_text(encoding="utf-8").splitlines()
            found += sum(bool(dangling.search(line)) for line in lines)
    yield f"lines with DESIGN or an F, P or B number: {found}"
    first = list(docstrings(root))
    questions = sum(bool(QUESTION.match(line.text)) for line in first)
    yield f"module docstrings as questions: {questions} of {len(first)}"
    comments, size = comment_density(root)
    yield f"comments in delicate modules: {100 * comments / size:.1f} per 100 of {size:,} lines"
    text = readme.read_text(encoding="utf-8")
    numbered = enumerate(text.splitlines(), 1)
    install = next((number for number, x in numbered if re.search(r"(pip|uv\w*) .*install", x)), 0)
    yield f"README: {len(text.split()):,} words, install on line {install}"


def main(arguments: list[str]) -> None:
    """Print the figures, or wrap the files that are named."""
    if arguments[:1] == ["--reflow"]:
        for name in arguments[1:]:
            path = Path(name)
            path.write_text(reflow(path.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if arguments[:1] == ["--pages"]:
        for page in pages():
            text = _text(page)
            figures = " ".join(f"{figure:5.1f}" for figure in _figures(text))
            print(f"{figures} {len(text.split()):6,} {page.relative_to(ROOT)}")  # noqa: T201
        return
    root = Path(arguments[1]) if arguments[:1] == ["--counts"] and arguments[1:] else ROOT
    for line in counts(root):
        print(line)  # noqa: T201
    if root == ROOT:
        forbidden = forbidden_messages()
        print(f"forbidden words in messages: {len(forbidden)}")  # noqa: T201
        print(f"errors without a hint: {len(errors_without_hint())}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
