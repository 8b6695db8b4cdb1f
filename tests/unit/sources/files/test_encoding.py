"""Encodings that are suggested for bytes that are not UTF-8."""

from __future__ import annotations

import re

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


SHORT = [
    ("cp932", "cp932", "id,名前\n1,東京\n"),
    ("cp932", "cp932", "id,name\n1,山田\n2,鈴木\n"),
    ("cp932", "cp932", "コード,値\n1,2\n"),
    ("cp932", "cp932", "氏名,住所\n山田太郎,東京都千代田区\n"),
    ("euc_jp", "euc_jp", "番号,名前\n1,東京\n"),
    ("euc_jp", "euc_jp", "id,name\n1,山田\n"),
    ("gb18030", "gb18030", "编号,名称\n1,北京\n"),
    ("gb18030", "gb18030", "id,name\n1,张三\n2,李四\n"),
    ("gb18030", "gb18030", "城市,人口\n上海,24\n广州,15\n"),
    ("euc_kr", "cp949", "번호,이름\n1,김철수\n"),
    ("euc_kr", "cp949", "id,city\n1,서울\n2,부산\n"),
    ("cp1255", "windows-1255", "id,שם\n1,דוד\n"),
    ("cp1255", "windows-1255", "id,name\n1,שלום\n2,תודה\n"),
    ("cp1255", "windows-1255", "עיר,מספר\nירושלים,1\nתל אביב,2\n"),
    ("cp1256", "windows-1256", "id,name\n1,محمد\n2,علي\n"),
    ("cp1251", "windows-1251", "id,имя\n1,Иван\n"),
    ("cp1251", "windows-1251", "id,name\n1,Москва\n2,Омск\n"),
    ("koi8-r", "koi8-r", "id,имя\n1,Иван\n2,Мария\n"),
    ("cp866", "cp866", "id,name\n1,Москва\n2,Омск\n"),
    ("cp1253", "windows-1253", "id,όνομα\n1,Αθήνα\n"),
    ("cp874", "cp874", "id,name\n1,กรุงเทพ\n2,เชียงใหม่\n"),
]


@pytest.mark.parametrize(("written", "suggested", "text"), SHORT)
def test_a_few_words_of_another_alphabet_suggest_its_encoding(
    written: str, suggested: str, text: str
) -> None:
    guess = suggest_encoding(text.encode(written))

    assert guess is not None
    assert (guess.value, guess.confidence) == (suggested, "LOW")
    word = next(word for word in re.findall(r"\w+", text) if not word.isascii())
    assert f"`{word[:2]}" in guess.reason


@pytest.mark.parametrize(
    ("written", "text"), [("cp932", "a,b\n1,ｶﾅ\n"), ("big5", "id,city\n1,高雄\n")]
)
def test_what_too_few_letters_suggest_is_no_more_than_perhaps(written: str, text: str) -> None:
    guess = suggest_encoding(text.encode(written))

    assert guess is not None
    assert guess.confidence == "LOW"
    assert guess.instead.startswith("encoding: ")
    assert guess.instead != f"encoding: {guess.value}"


@pytest.mark.parametrize("word", ["Müller", "Łódź", "Øster smørrebrød", "élève", "Ångström"])
@pytest.mark.parametrize("written", ["cp1252", "cp1250", "cp850"])
def test_latin_letters_suggest_no_other_alphabet(word: str, written: str) -> None:
    try:
        data = rows(word).encode(written)
    except UnicodeEncodeError:
        return
    guess = suggest_encoding(data)

    assert guess is not None
    assert guess.value in ("windows-1252", "windows-1250", "cp850")
