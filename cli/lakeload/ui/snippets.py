"""Statements and commands to copy: on stdout they are one script, comments and all."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.engines.snippets import Snippet
from lakeload.ui import console


def show_snippets(snippets: Sequence[Snippet]) -> None:
    """Write them to stdout with a blank line between. What has no comments is explained on stderr,
    so that stdout can be piped into a file."""
    console.answer("\n\n".join(snippet.commented for snippet in snippets))
    for snippet in snippets:
        if snippet.language == "json":
            console.note(f"{snippet.title}: {snippet.why}")
