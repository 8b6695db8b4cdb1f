"""Sentences as comments of scripts and Terraform."""

from __future__ import annotations

from textwrap import wrap

_WIDTH = 80


def comment(*sentences: str) -> str:
    """Return sentences as comments of at most 80 columns."""
    lines = [line for text in sentences for line in wrapped(text, _WIDTH - 2)]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text; lines that are indented stay as they are."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line)
        else:
            lines += wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    return lines
