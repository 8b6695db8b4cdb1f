"""Encodings of other than Latin letters, ranked by how usual the characters are that they make.

A few words are enough. Statistics, as charset-normalizer has them, need some sentences.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cache

_LATIN = re.compile("[A-Za-z]")
_SAMPLE = 1 << 14
_CAPITALS = 0.8
_UNUSUAL = 0.1


@dataclass(frozen=True)
class _Alphabet:
    """An encoding, its languages as charset-normalizer names them, and the characters that the
    encoding has: those of a standard before it that has the common ones alone, in `leads` of it."""

    name: str
    languages: tuple[str, ...]
    letters: str = ""
    """First and last letter."""
    standard: str = ""
    leads: tuple[int, int] = (0, 0)


_ALPHABETS = (
    _Alphabet("gb18030", ("Chinese",), standard="gb2312", leads=(0xB0, 0xD7)),
    _Alphabet("cp932", ("Japanese", "Japanese—", "Japanese——"), "ぁー", "shift_jis", (0x88, 0x97)),
    _Alphabet("euc_jp", ("Japanese", "Japanese—", "Japanese——"), "ぁー", "euc_jp", (0xB0, 0xCF)),
    _Alphabet("cp949", ("Korean",), standard="euc_kr", leads=(0xB0, 0xC8)),
    _Alphabet("big5", ("Chinese",), standard="big5", leads=(0xA4, 0xC6)),
    _Alphabet("windows-1251", ("Russian", "Ukrainian"), "Ѐӿ"),
    _Alphabet("koi8-r", ("Russian", "Ukrainian"), "Ѐӿ"),
    _Alphabet("cp866", ("Russian", "Ukrainian"), "Ѐӿ"),
    _Alphabet("windows-1253", ("Greek",), "Ͱώ"),
    _Alphabet("windows-1255", ("Hebrew",), "את"),
    _Alphabet("windows-1256", ("Arabic", "Farsi"), "ءۓ"),
    _Alphabet("cp874", ("Thai",), "ก์"),
)


def ranked_alphabets(data: bytes, least: float) -> list[str]:
    """Return the encodings in which the bytes are words, the best one first: their characters are
    on average more usual than `least`, from 0 to 1."""
    lines = [line for line in data.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_SAMPLE]
    scores = {one.name: _score(sample, one) for one in _ALPHABETS}
    return sorted((name for name in scores if scores[name] > least), key=lambda n: -scores[n])


def _score(sample: bytes, alphabet: _Alphabet) -> float:
    """Return how usual the characters are on average, from 0 to 1."""
    try:
        # The last character may be cut.
        text = codecs.getincrementaldecoder(alphabet.name)().decode(sample)
    except UnicodeDecodeError:
        return 0
    total, count = 0.0, 0
    for before, char, behind in zip(" " + text, text, text[1:] + " ", strict=False):
        if char.isascii():
            continue
        count += 1
        # No word has letters of two alphabets.
        if alphabet.standard or not _LATIN.search(before + behind):
            total += _usual(char, before, alphabet)
    return total / count if count else 0


def _usual(char: str, before: str, alphabet: _Alphabet) -> float:
    if char.isupper():  # within a word it is as if the case were swapped
        weight = 0 if before.islower() else 1 if not before.isalpha() else _CAPITALS
        return weight * _usual(char.lower(), before, alphabet)
    ranks = _ranks(alphabet.languages)
    if char in ranks:
        return 1 - 0.3 * ranks[char]
    if alphabet.letters and alphabet.letters[0] <= char <= alphabet.letters[1]:
        return 0.6
    if alphabet.standard:
        return _of_standard(char, alphabet)
    return 0 if char.isalpha() else _UNUSUAL


def _of_standard(char: str, alphabet: _Alphabet) -> float:
    """Return how usual a character is in a standard that has the common ones first."""
    if "｡" <= char <= "ﾟ":  # kana of half a width, in bytes that others use for letters
        return 0.6
    if "　" <= char <= "】" or "！" <= char <= "～":  # signs, and letters of full width
        return 0.4
    try:
        lead = char.encode(alphabet.standard)[0]
    except UnicodeEncodeError:
        return _UNUSUAL
    return 0.7 if alphabet.leads[0] <= lead <= alphabet.leads[1] else 0.2


@cache
def _ranks(languages: tuple[str, ...]) -> dict[str, float]:
    """Return the most frequent characters of languages, the first ones near 0, the last near 1."""
    from charset_normalizer.constant import FREQUENCIES

    ranks: dict[str, float] = {}
    for language in languages:
        frequent = FREQUENCIES[language]
        for place, char in enumerate(frequent):
            ranks[char] = min(place / len(frequent), ranks.get(char, 1))
    return {char: rank for char, rank in ranks.items() if not char.isascii()}
