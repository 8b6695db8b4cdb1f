"""Files with backslash escapes, against a parser that goes from character to character."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field, replace

import pytest

from lakeload_jobs.sources.files.formats.csv.records import (
    BlockParser,
    Blocks,
    Dialect,
    Layout,
    guess_start,
)
from tests.environments import many
from tests.unit.sources.files.formats.csv.dumps import Row, dialects, parsed, tables, written


@dataclass
class Read:
    """What a part of a file holds."""

    rows: list[Row] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    bad: list[tuple[bytes, str]] = field(default_factory=list)
    end: int = 0
    line: int = 1
    proven: int = 0


def read(
    data: bytes,
    width: int,
    dialect: Dialect,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int = 1 << 20,
    line: int = 1,
) -> Read:
    """Read the records that begin in a part of a file."""
    names = tuple(f"c{number}" for number in range(width))
    parser = BlockParser(dialect, Layout(names, tuple(range(width))))
    stream = io.BytesIO(data)
    stream.seek(start)
    blocks = Blocks(stream, dialect, start, stop, line, size=size, least=1)
    found = Read()
    for block in blocks:
        batch = parser.parse(block)
        rows = [list(row.values()) for row in batch.rows.to_pylist()]
        found.rows += rows
        found.lines += batch.lines(range(len(rows)))
        found.records += batch.records(range(len(rows)))
        found.bad += [(bad.raw, bad.reason) for bad in batch.bad]
        found.proven += block.proven and not batch.bad
    found.end, found.line = blocks.end, blocks.line
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_dumps_are_read_back_in_any_parts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeload_jobs.sources.files.formats.csv.backslashes._CHUNK", seed + 1)
    chance = random.Random(seed)  # noqa: S311
    proven = 0
    for _ in range(many(100)):
        dialect = dialects(chance)
        rows = tables(chance, dialect)
        if b"" in dialect.nulls and not dialect.quote:
            rows = [[value or None for value in row] for row in rows]
        if len(rows[0]) > 1 and not dialect.quote:
            rows = [row if any(row) else ["x", *row[1:]] for row in rows]
        text = written(rows, dialect, chance)
        assert parsed(text, dialect) == rows, text
        data, width = text.encode(), len(rows[0])

        whole = read(data, width, dialect, size=chance.choice([8, 64, 1 << 20]))

        assert (whole.rows, whole.bad, whole.end) == (rows, [], len(data)), text
        break_bytes = dialect.line_break
        assert b"".join(record + break_bytes for record in whole.records) == data
        proven += whole.proven
        check_parts(data, width, dialect, whole, chance)
    assert proven > many(100) // 4


def check_parts(
    data: bytes, width: int, dialect: Dialect, whole: Read, chance: random.Random
) -> None:
    """Read a file in parts with guessed beginnings, each where the one before ends."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 4)))
    parts, at, line = Read(), 0, 1
    for stop in [*cuts, None]:
        part = read(
            data, width, dialect, start=at, stop=stop, size=chance.choice([8, 64]), line=line
        )
        parts.rows += part.rows
        parts.lines += part.lines
        at, line = part.end, part.line
    assert (parts.rows, at, line) == (whole.rows, whole.end, whole.line)
    assert parts.lines == whole.lines, data


def test_escaped_line_break_is_not_taken_for_the_beginning_of_a_record() -> None:
    dialect = Dialect(b"|", b"", backslashes=True, nulls=frozenset({b"\\N"}))

    assert guess_start(b"xx\\\nyy|a\nb|c\n", dialect) == len(b"xx\\\nyy|a\n")
    assert guess_start(b"xx\\\\\nyy|a\n", dialect) == len(b"xx\\\\\n")


@pytest.mark.parametrize(
    ("data", "bad"),
    [
        (b"1|a|b\n2|c\n", [(b"1|a|b", "it has 3 values, and 2 are expected")]),
        (b"1|a\r\n2|b\r|c\r\n", [(b"2|b\r|c\r", "it has 3 values, and 2 are expected")]),
        (b"1|a\\", [(b"1|a\\", "the file ends with a backslash that stands before nothing")]),
        (b"1|a\\\nb|c\n", [(b"1|a\\\nb|c", "it has 3 values, and 2 are expected")]),
        (
            b"1|\xff\n",
            [(b"1|\xff", "the bytes of column `c1` are not text in the file's encoding")],
        ),
        (b'1|"a"b\n', [(b'1|"a"b', "text follows a closing quote")]),
        (b'1|"a\\"\n', [(b'1|"a\\"', "a quote is opened that is never closed")]),
    ],
)
def test_broken_record_is_rejected_as_it_is_written(
    data: bytes, bad: list[tuple[bytes, str]]
) -> None:
    dialect = Dialect(b"|", b'"', backslashes=True, nulls=frozenset({b"\\N"}))

    assert read(data, 2, dialect).bad == bad


@pytest.mark.parametrize("end", [b"\\.", b"\\.\n", b"\\.\nc\\\\\t2\n"])
def test_end_mark_of_copy_is_no_record(end: bytes) -> None:
    dialect = Dialect(b"\t", b"", backslashes=True, nulls=frozenset({b"\\N"}))
    expected: list[Row] = [["a", "1"], ["\\.", "b"], ["c\\", "2"]]

    found = read(b"a\t1\n\\\\.\tb\n" + end, 2, dialect)
    one = read(b"a\n" + end[:3], 1, dialect)

    assert (found.rows, found.bad) == (expected[: len(found.rows)], [])
    assert len(found.rows) == 2 + (b"c" in end)
    assert one.rows == [["a"]]


def test_characters_that_all_are_in_use_are_read() -> None:
    """No character is left that could stand for another one."""
    dialect = Dialect(b"|", b"", backslashes=True, nulls=frozenset({b"\\N"}))
    every = [chr(code) for code in range(1, 128)]
    escaped = "".join(f"\\{sign}" for sign in every)
    alone = "".join(sign for sign in every if sign not in "\\|\n")
    rows = parsed(f"{escaped}|{alone}\n", replace(dialect))

    assert read(f"{escaped}|{alone}\n".encode(), 2, dialect).rows == rows
