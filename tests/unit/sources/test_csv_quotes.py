"""Lines that end inside quotes; the integration tests compare with Spark's own parser."""

from __future__ import annotations

import random

import pytest

from lakeload_jobs.sources.files.spark.csv_quotes import Dialect, Lines, LineScan


def scan(text: str, size: int = 1000, options: dict[str, str] | None = None) -> Lines:
    data = text.encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return LineScan(Dialect.from_options(options or {})).lines(chunks)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "open_line"),
    [
        (["a,b", '1,"x', 'y"'], 1),
        (["a,b", '1,"x,', '",2'], 1),
        (["a,b", '5" pipe,"x', '"'], 1),
        (['"a""', 'b"'], 0),
        (["a,b", '1,"say ""hi"" , you"', '"",""', '5" pipe,2', '"x"y",3', '"x" ,4', ""], None),
        (["a,b", '1, "x', "2,3"], None),
    ],
)
def test_a_line_that_ends_inside_quotes_is_found(
    lines: list[str], open_line: int | None, end: str, size: int
) -> None:
    assert scan(end.join(lines), size).before_open == open_line


@pytest.mark.parametrize(
    ("text", "options", "open_line"),
    [
        ("1,'x\n2'", {"quote": "'"}, 0),
        ("1,'x\n2'", {}, None),
        ('1;"x\n2"', {"sep": ";"}, 0),
        ('1,"x\n2"', {"delimiter": "||"}, None),
        ('1||"x\n2"', {"delimiter": "||"}, 0),
        ('1\t"x\n', {"sep": "\\t"}, 0),
        ('1,"a\\"\nb"', {"escape": "\\"}, 0),
        ('1,"a\\"\nb', {}, None),
        ('1,"a\\\\"\nb', {"escape": "\\"}, None),
        ('# it"s, "\n1,2', {"comment": "#"}, None),
        ('1, "x\n2"', {"ignoreLeadingWhiteSpace": "true"}, 0),
        ('1,"x\ny"|2,3|4,"z|', {"lineSep": "|"}, 2),
        ('1,"x"y\n', {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"}, 0),
    ],
)
def test_the_readers_options_say_what_a_quote_is(
    text: str, options: dict[str, str], open_line: int | None
) -> None:
    assert scan(text, options=options).before_open == open_line


def test_other_encodings_have_their_bytes_for_a_quote() -> None:
    dialect = Dialect.from_options({"quote": "«", "escape": "«"})
    text = "a,«b\nc«\n".encode("iso-8859-1")

    assert LineScan(dialect, "iso-8859-1").lines([text]).before_open == 0


@pytest.mark.parametrize("seed", range(3))
def test_plain_blocks_are_told_without_a_look_at_each_line(seed: int) -> None:
    """Whatever the pattern calls plain has no open line, wherever the text is cut."""
    rnd = random.Random(seed)  # noqa: S311
    for _ in range(2000):
        text = "".join(rnd.choices('a",\n\r', k=rnd.randint(1, 14)))
        one_by_one = LineScan(Dialect())
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        expected = next((n for n, line in enumerate(lines) if one_by_one.ends_open(line)), None)
        assert scan(text, rnd.randint(1, 15)).before_open == expected, text
