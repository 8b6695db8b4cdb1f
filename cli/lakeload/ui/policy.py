"""Statements and commands to copy: on stdout they are one script, comments and all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from rich.text import Text

from lakeload.policy.policy_set import PolicySet
from lakeload.policy.render import shell, terraform
from lakeload.policy.templates import Snippet, wrapped
from lakeload.ui import console


def show_snippets(snippets: Sequence[Snippet]) -> None:
    """Write them to stdout with a blank line between. What has no comments is explained on stderr,
    so that stdout can be piped into a file."""
    console.answer("\n\n".join(snippet.commented for snippet in snippets))
    for snippet in snippets:
        if snippet.language == "json":
            console.note(f"{snippet.title}: {snippet.why}")


_TITLES = {
    "trust": "Trust policy of the role",
    "s3": "S3 permissions",
    "glue": "Glue permissions",
    "kms": "KMS permissions",
    "source": "Reading the source",
    "maintain": "For maintain",
    "reset": "For reset only",
    "base": "The identity that runs lakeload",
}


def show(found: PolicySet, notes: tuple[str, ...], form: str) -> None:
    """Write the documents to stdout.

    Commands and Terraform carry the companion text as comments. JSON cannot: on a terminal each
    document stands alone below its heading, ready to be copied; elsewhere stdout is one JSON
    document, of all by name or of the one asked for, and the text goes to stderr.
    """
    if form == "cli":
        console.answer(shell(found, notes).rstrip("\n"))
    elif form == "terraform":
        console.answer(terraform(found, notes).rstrip("\n"))
    elif console.out.is_terminal:
        _show_each(found, notes)
    else:
        _show_one(found, notes)


def _say(text: str, speak: Callable[[str | Text], None]) -> None:
    """Say a sentence in lines that fit; what goes on is indented."""
    first, *rest = wrapped(text, min(console.err.width, 100) - 2)
    speak("\n".join([first, *(f"  {line}" for line in rest)]))


def _show_each(found: PolicySet, notes: tuple[str, ...]) -> None:
    for document in found.documents:
        console.answer(Text(f"{_TITLES[document.name]} ({document.name})", "bold"))
        for statement in document.statements:
            _say(f"{statement.sid}: {statement.why}", console.answer)
        console.answer(f"\n{json.dumps(document.as_json(), indent=2)}\n")
    for note in notes:
        _say(note, console.note)


def _show_one(found: PolicySet, notes: tuple[str, ...]) -> None:
    if found.asked.only:
        console.show_json(found.documents[0].as_json())
    else:
        console.show_json({one.name: one.as_json() for one in found.documents})
    for document in found.documents:
        for statement in document.statements:
            _say(f"{document.name}: {statement.sid}: {statement.why}", console.note)
    for note in notes:
        _say(note, console.note)
