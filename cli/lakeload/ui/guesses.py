"""Guesses of `inspect` and `init` that are not certain, as their last lines and in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lakeload.init.table_settings import setting
from lakeload.ui.errors import say
from lakeload.ui.json_documents import GuessDocument, TableGuessDocument

if TYPE_CHECKING:
    from lakeload.sources.files.formats.base import Guess, OptionValue

CONFIDENCE = {"HIGH": "", "MEDIUM": "probably", "LOW": "perhaps"}
_WORST = ("LOW", "MEDIUM")
_TABLES_SHOWN = 3


@dataclass(frozen=True)
class TableGuess:
    """A guess, and the table whose files it is about."""

    table: str
    guess: Guess


def say_guesses(guesses: Sequence[TableGuess], err: Console) -> None:
    """Write the guesses that are not certain; those that are equal in several tables once."""
    tables: dict[Guess, list[str]] = {}
    for one in _worst_first(guesses):
        tables.setdefault(one.guess, []).append(one.table)
    for guess, names in tables.items():
        more = len(names) - _TABLES_SHOWN
        shown = ", ".join(names[:_TABLES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        say(
            err,
            "guess",
            f"{shown}: `{setting(guess.option, guess.value)}`, {CONFIDENCE[guess.confidence]}: "
            f"{guess.reason}; otherwise set `{guess.instead}`",
        )


def guess_document(guess: Guess) -> GuessDocument:
    """Return the JSON of a guess."""
    return {
        "option": guess.option,
        "value": plain(guess.value),
        "confidence": guess.confidence,
        "reason": guess.reason,
        "instead": guess.instead,
    }


def plain(value: OptionValue) -> Any:
    """Return the value of an option as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def guess_documents(guesses: Sequence[TableGuess]) -> list[TableGuessDocument]:
    """Return the JSON of those that are not certain, worst first."""
    return [{"table": one.table, **guess_document(one.guess)} for one in _worst_first(guesses)]


def _worst_first(guesses: Sequence[TableGuess]) -> list[TableGuess]:
    unsure = [one for one in guesses if one.guess.confidence in _WORST]
    return sorted(unsure, key=lambda one: _WORST.index(one.guess.confidence))
