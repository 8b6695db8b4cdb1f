"""Encodings that are suggested for bytes that are not UTF-8."""

from __future__ import annotations

import pytest

from lakeload.sources.files.encoding import suggest_encoding

GERMAN = "Nördlingen Straße Größe Müller „Zitat“ 5 € kostet’s"
POLISH = "Łódź żółty Kraków święto gęś"
RUSSIAN = "Привет мир, как дела сегодня"


def rows(text: str) -> str:
    return "id,text\n" + "\n".join(f"{n},{word}" for n, word in enumerate(text.split() * 3))


@pytest.mark.parametrize(
    ("text", "written", "suggested"),
    [
        (GERMAN, "cp1252", "windows-1252"),
        (GERMAN, "cp850", "cp850"),
        ("Nördlingen Straße Größe", "latin-1", "windows-1252"),
        ("Øster smørrebrød", "latin-1", "windows-1252"),
        ("élève français Noël", "cp1252", "windows-1252"),
        (POLISH, "cp1250", "windows-1250"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (GERMAN, "utf-16-le", "utf-16-le"),
    ],
)
def test_suggest_encoding_returns_the_encoding_of_readable_words(
    text: str, written: str, suggested: str
) -> None:
    guess = suggest_encoding(rows(text).encode(written, "ignore"))

    assert guess is not None
    assert guess.value == suggested


@pytest.mark.parametrize("written", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "ascii"])
def test_suggest_encoding_of_utf_8_is_none(written: str) -> None:
    assert suggest_encoding(rows(GERMAN).encode(written, "ignore")) is None


def test_a_character_that_is_cut_off_is_utf_8() -> None:
    assert suggest_encoding("a,Größe".encode()[:-2]) is None


def test_the_reason_shows_a_word_that_tells_the_encodings_apart() -> None:
    guess = suggest_encoding(rows("Østby Århus").encode("cp1252"))

    assert guess is not None
    assert guess.confidence == "LOW"
    assert "`Østby`, where windows-1250 makes `Řstby`" in guess.reason
