"""Dumps of databases: random tables, a writer, and a parser that takes one character at a time."""

from __future__ import annotations

import random
from collections.abc import Collection

from lakeload_jobs.sources.files.formats.csv.records import Dialect

LETTERS = {"0": "\0", "Z": "\x1a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
Row = list["str | None"]


def parsed(text: str, dialect: Dialect) -> list[Row]:
    """Return the records of a text, one character after the other."""
    separator, quote = dialect.separator.decode(), dialect.quote.decode()
    line_break, nulls = dialect.line_break.decode(), {null.decode() for null in dialect.nulls}
    rows: list[Row] = []
    at, row, value, begin, quoted = 0, Row(), "", 0, False

    def ended() -> str | None:
        return None if text[begin:at] in nulls else value

    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            value += LETTERS.get(text[at + 1], text[at + 1])
            at += 2
        elif quoted and text.startswith(quote * 2, at):
            value += quote
            at += 2
        elif quote and char == quote and (quoted or at == begin):
            quoted = not quoted
            at += 1
        elif not quoted and text.startswith(separator, at):
            row.append(ended())
            at += len(separator)
            value, begin = "", at
        elif not quoted and text.startswith(line_break, at):
            rows.append([*row, ended()])
            at += len(line_break)
            row, value, begin = [], "", at
        else:
            value += char
            at += 1
    if row or begin < len(text):
        rows.append([*row, ended()])
    return rows


def written(
    rows: list[Row],
    dialect: Dialect,
    chance: random.Random,
    letters: Collection[str] = tuple(LETTERS),
    raw: Collection[str] = "\r\n",
) -> str:
    """Write rows as databases do, each sign in one of the ways that it can be written. `letters`
    are those that may stand behind a backslash, `raw` the line breaks that need none."""
    separator, quote = dialect.separator.decode(), dialect.quote.decode()
    must = {separator[0], quote, "\\", dialect.line_break.decode()[0]}
    must |= {"\r", "\n"} - {*raw}
    signs = {sign: letter for letter, sign in LETTERS.items() if letter in letters}
    out = []
    for row in rows:
        values = []
        for value in row:
            if value is None:
                values.append(chance.choice(sorted(null.decode() for null in dialect.nulls)))
                continue
            encloses = bool(quote) and (not value or chance.random() < 0.5)
            parts = []
            for sign in value:
                if sign in signs and chance.random() < 0.5:
                    parts.append("\\" + signs[sign])
                elif sign in must or (not sign.isalnum() and sign != "." and chance.random() < 0.1):
                    parts.append("\\" + sign)
                else:
                    parts.append(sign)
            text = "".join(parts)
            text = f"{quote}{text}{quote}" if encloses else text
            values.append(f"\\{text}" if text == "-" else text)
        out.append(separator.join(values) + dialect.line_break.decode())
    return "".join(out)


def dialects(chance: random.Random) -> Dialect:
    """Return a dialect of some database."""
    line_break = chance.choice([b"\n", b"\n", b"\n", b"\r\n"])
    quote = chance.choice([b"", b"", b'"', b"'"])
    nulls = chance.choice([[b"\\N"], [b"\\N"], [b"\\N", b"-"], [b"\\N", b""]])
    separator = chance.choice([b"\t", b"|", b",", b"\x01", b"||"])
    return Dialect(
        separator, quote, backslashes=True, line_break=line_break, nulls=frozenset(nulls)
    )


def tables(chance: random.Random, dialect: Dialect) -> list[Row]:
    """Return rows of the signs that mean something, and of all that text may have."""
    width = chance.randint(1, 4)
    signs = [*"\\\\\\NntbZ01.\"'|,\t\n\n\r\x01\0é -", "\r\n", "\\N", dialect.separator.decode()]
    signs += [chr(chance.randrange(256)) for _ in range(8)]
    return [
        [
            None
            if chance.random() < 0.15
            else "".join(chance.choices(signs, k=chance.randint(0, 6)))
            for _ in range(width)
        ]
        for _ in range(chance.randint(1, 25))
    ]
