"""Suggestion of the encoding of bytes that are not UTF-8. A load never guesses one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.sources.files.alphabets import ranked_alphabets
from lakeload.sources.files.dialect import Confidence, Guess
from lakeload_jobs.sources.files.source_bytes import byte_order_mark, wide_encoding

_WESTERN = ("windows-1252", "windows-1250", "cp850", "mac-roman")
"""Encodings with the letters of Latin alphabets, the most frequent first."""
_WORD = re.compile(rb"(?<![A-Za-z\x80-\xff])[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*")
_RUN = re.compile(rb"[\x80-\xff]{3,}")
_WIDE = ("utf_7", *(f"utf_{bits}{end}" for bits in (16, 32) for end in ("", "_be", "_le")))
_WITHIN_WORDS = "’'–-·´`"
_MOST_WORDS = 5000
_FEW_WORDS = 3


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
    words = list(dict.fromkeys(_WORD.findall(data)))[:_MOST_WORDS]
    high = sum(byte > 0x7F for word in words for byte in word)
    in_runs = sum(len(run) for word in words for run in _RUN.findall(word))
    western = _western(words)
    is_other = in_runs > high / 2
    if is_other or western.is_odd:
        ranked = ranked_alphabets(data, 0.5 if is_other else 0.82)
        if is_other and not ranked and (name := _by_statistics(data)):
            ranked = [name]
        if ranked:
            reason = f"it makes words like `{_example(data, ranked[0])}`"
            other = [*ranked[1:2], str(western.guess.value)][0]
            return Guess("encoding", ranked[0], "LOW", reason, f"encoding: {other}")
    return western.guess


@dataclass(frozen=True)
class _Western:
    """The best of the encodings of Latin letters, and whether the usual ones make few words."""

    guess: Guess
    is_odd: bool


def _example(data: bytes, name: str) -> str:
    """Return the first word that is no English."""
    text = data.decode(name, "replace")
    return next((word for word in re.findall(r"\w+", text) if not word.isascii()), "")[:30]


def _by_statistics(data: bytes) -> str | None:
    """Return what charset-normalizer takes the bytes for: it is good at other alphabets, and not
    at telling the Latin ones apart."""
    from charset_normalizer import from_bytes

    lines = [line for line in data.splitlines() if not line.isascii()]
    # Those with two bytes for each character are known by their zeros.
    found = from_bytes(b"\n".join(lines)[: 1 << 16], cp_exclusion=list(_WIDE))
    best = found.best()
    return codecs.lookup(best.encoding).name if best is not None else None


def _western(words: Sequence[bytes]) -> _Western:
    read = {
        name: texts
        for name in _WESTERN
        if None not in (texts := [_decoded(word, name) for word in words])
    }
    if not read:
        reason = "bytes that no other encoding has"
        return _Western(Guess("encoding", "iso-8859-1", "LOW", reason), is_odd=True)
    odd = {name: sum(map(_is_odd, texts)) for name, texts in read.items()}
    # A few odd words are in every text.
    best = min(read, key=lambda name: odd[name] if odd[name] > len(words) // 20 else 0)
    place = next(
        (
            place
            for place, text in enumerate(read[best])
            if any(texts[place] != text for texts in list(read.values())[:2])
        ),
        0,
    )
    example = read[best][place] or ""
    other = next((name for name in list(read)[:2] if name != best), None)
    reason = f"it makes words like `{example[:30]}`"
    confidence: Confidence = "MEDIUM"
    if other is not None and read[other] == read[best]:
        reason += f", as {other} does"
    elif other is not None:
        reason += f", where {other} makes `{(read[other][place] or '')[:30]}`"
        enough = len(words) > _FEW_WORDS and odd[other] > odd[best]
        confidence = "MEDIUM" if enough else "LOW"
    instead = f"encoding: {other or _another(best)}"
    guess = Guess("encoding", best, confidence, reason, instead)
    usual = min(odd.get(name, len(words)) for name in _WESTERN[:2])
    return _Western(guess, is_odd=usual > len(words) / 4)


def _another(name: str) -> str:
    """Return the most frequent encoding that is not this one."""
    return next(other for other in _WESTERN if other != name)


def _decoded(word: bytes, name: str) -> str | None:
    try:
        return word.decode(name)
    except UnicodeDecodeError:
        return None


def _is_odd(text: str | None) -> bool:
    """Whether a sign that is no letter stands within a word, or a capital behind a small letter."""
    if text is None:
        return True
    for place, char in enumerate(text):
        if char.isascii():
            continue
        beside = text[place - 1 : place] + text[place + 1 : place + 2]
        if not char.isalpha() and char not in _WITHIN_WORDS and len(beside) > (place > 0):
            return True
        if char.isupper() and place and text[place - 1].islower():
            return True
    return False
