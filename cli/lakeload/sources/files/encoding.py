"""Suggestion of the encoding of bytes that are not UTF-8. A load never guesses one."""

from __future__ import annotations

import codecs
from math import log

from lakeload.sources.files.alphabets import UTF8, Reading, readings
from lakeload.sources.files.formats.base import Guess
from lakeload_jobs.sources.paths.source_bytes import byte_order_mark, wide_encoding

_CERTAIN = log(1000)
"""Costs of the next text from which on the first one is probable."""
_USUAL = log(6)
"""What a character of a text that is one costs at most, on average."""
_LONGEST = 30
_OTHERS = 2
"""Other encodings that are shown where it is not certain which one it is."""


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8; the last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def suggest_encoding(data: bytes) -> Guess | None:
    """Return the reader option that `data`, the beginning of a file, needs; None where it is
    UTF-8, or begins with a byte order mark."""
    mark, _ = byte_order_mark(data)
    if mark:
        return None
    if wide := wide_encoding(data):
        return Guess("encoding", wide, "HIGH", "every other byte is zero")
    if is_utf8(data):
        return None
    best, *others = readings(data) or [Reading("iso-8859-1", (), 0, 0)]
    if best.name == UTF8:
        return None  # Some records have another encoding: a load names their lines.
    others = others[:_OTHERS]
    instead = f"encoding: {others[0].name if others else 'windows-1252'}"
    if not others:
        return Guess("encoding", best.name, "LOW", "no other encoding has these bytes", instead)
    place = _telling(best, others[0])
    own, *words = (_shown(one, place) for one in (best, *others))
    if others[0].cost - best.cost > _CERTAIN and best.mean < _USUAL:
        reason = f"it makes words like `{own}`, where {others[0].name} makes `{words[0]}`"
        return Guess("encoding", best.name, "MEDIUM", reason, instead)
    read = ", ".join(f"{one.name} `{word}`" for one, word in zip(others, words, strict=True))
    reason = f"the bytes do not say which encoding it is: it makes words like `{own}`, {read}"
    return Guess("encoding", best.name, "LOW", reason, instead)


def _telling(best: Reading, other: Reading) -> int:
    """Return the place of the first word that another encoding reads in another way."""
    pairs = enumerate(zip(best.words, other.words, strict=False))
    return next((place for place, (own, word) in pairs if own != word), 0)


def _shown(one: Reading, place: int) -> str:
    word = one.words[place] if place < len(one.words) else one.words[0]
    return "".join(char if char.isprintable() else "\ufffd" for char in word[:_LONGEST])
