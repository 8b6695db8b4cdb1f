"""Records of CSV files, against Python's `csv`: whole files, any blocks, any parts."""

from __future__ import annotations

import csv
import io
import random
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakeload_jobs.sources.files.formats.csv.records import (
    BlockParser,
    Blocks,
    Dialect,
    Layout,
    guess_start,
)
from tests.environments import many


@dataclass
class Read:
    """What a part of a file holds: rows and bad records, each with its line."""

    rows: list[tuple[int, list[str | None]]] = field(default_factory=list)
    bad: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0
    line: int = 1
    proven: int = 0


def read(
    data: bytes,
    width: int,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int = 1 << 20,
    line: int = 1,
    dialect: Dialect | None = None,
) -> Read:
    """Read the records that begin in a part of `data`, in blocks of `size` bytes and more."""
    dialect = dialect or Dialect()
    names = tuple(f"c{number}" for number in range(width))
    parser = BlockParser(dialect, Layout(names, tuple(range(width))))
    stream = io.BytesIO(data)
    stream.seek(start)
    blocks = Blocks(stream, dialect, start, stop, line, size=size, least=1)
    again = io.BytesIO(data)
    again.seek(start)
    found = Read()
    first = list(blocks)
    reread = Blocks(again, dialect, start, stop, line, known=tuple(blocks.sizes))
    assert (list(reread), reread.end, reread.line) == (first, blocks.end, blocks.line)
    for block in first:
        found.proven += block.proven
        batch = parser.parse(block)
        rows = list(zip(*(column.to_pylist() for column in batch.rows.columns), strict=True))
        lines = batch.lines(range(len(rows)))
        found.rows += [(at, list(row)) for at, row in zip(lines, rows, strict=True)]
        # Where a quote is opened that is never closed, the line is that of the quote.
        found.bad += [
            (0 if "never closed" in bad.reason else bad.line, bad.raw) for bad in batch.bad
        ]
    found.end, found.line = blocks.end, blocks.line
    return found


class _Lines:
    """The lines of a file, and those that were taken since the last look."""

    def __init__(self, data: bytes) -> None:
        self.text = io.TextIOWrapper(io.BytesIO(data), encoding="latin-1", newline="")
        self.taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.text.readline()
        if not line:
            raise StopIteration
        self.taken.append(line)
        return line


def oracle(data: bytes, width: int, separator: str = ",") -> Read:
    """Read a file with Python's `csv`: lenient extents, and bad where its strict mode refuses."""
    found, lines, at = Read(), _Lines(data), 1
    for record in csv.reader(lines, delimiter=separator):
        raw, first = "".join(lines.taken), at
        at += len(lines.taken)
        lines.taken.clear()
        if not record:
            if width == 1:
                found.rows.append((first, [None]))
            continue
        try:
            strict = csv.reader(io.StringIO(raw, newline=""), strict=True, delimiter=separator)
            list(strict)
            values = [value.encode("latin-1").decode() or None for value in record]
        except UnicodeDecodeError:
            values = []
        except csv.Error:
            values = []
        if values and not any(values):
            values = [None] * width  # separators alone
        if len(values) == width:
            found.rows.append((first, list(values)))
        else:
            found.bad.append((first, raw.encode("latin-1").removesuffix(b"\n").removesuffix(b"\r")))
    found.end = len(data)
    return found


def hostile(chance: random.Random, separator: str) -> tuple[int, bytes]:
    """Return a file: written well, written well and damaged, or of signs that mean something."""
    width, kind = chance.randint(1, 4), chance.random()
    if kind < 0.45:
        signs = ["a", '"', separator, "\n", "\r\n", "é", "1", " ", ""]
        rows = [
            ["".join(chance.choices(signs, k=chance.randint(0, 5))) for _ in range(width)]
            for _ in range(chance.randint(0, 25))
        ]
        text = io.StringIO(newline="")
        csv.writer(
            text,
            delimiter=separator,
            lineterminator=chance.choice(["\n", "\r\n"]),
            quoting=chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        ).writerows(rows)
        data = bytearray(text.getvalue().encode())
        if kind < 0.2 and data:
            for _ in range(chance.randint(1, 3)):
                data[chance.randrange(len(data))] = chance.choice(b'",\n\r\xff\0a ')
        return width, bytes(data.rstrip(b"\r\n") if chance.random() < 0.3 else data)
    words = (b'a",\n', b'a,\n\r"', b'ab,,,\n\n"', b'"",\n', b'a\xc3\xa9,\n"\r\0 \xff')
    word = chance.choice(words).replace(b",", separator.encode())
    return width, bytes(chance.choices(word, k=chance.randint(0, 200)))


@pytest.mark.parametrize("seed", range(4))
def test_hostile_files_are_read_as_python_reads_them(seed: int) -> None:
    compare(seed, many(250))


def compare(seed: int, files: int) -> dict[str, int]:
    """Compare hostile files with the oracle: whole, and in parts with guessed beginnings."""
    chance = random.Random(seed)  # noqa: S311
    tally = dict.fromkeys(("rows", "bad", "proven", "right", "wrong"), 0)
    for _ in range(files):
        separator = chance.choice(",,;\t")
        dialect = Dialect(separator.encode())
        width, data = hostile(chance, separator)
        expected = oracle(data, width, separator)

        whole = read(data, width, size=chance.choice([8, 32, 64, 1 << 20]), dialect=dialect)

        assert (whole.rows, _same(whole.bad, expected.bad)) == (expected.rows, expected.bad), data
        assert whole.end == len(data)
        tally["rows"] += len(whole.rows)
        tally["bad"] += len(whole.bad)
        tally["proven"] += whole.proven
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 4)))
        rows, bad, at, line = [], [], 0, 1
        for first, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
            window = data[max(first - 1, 0) : first + chance.choice([16, 64])]
            guess = guess_start(window, dialect) if first else 1
            start = len(data) if guess is None else max(first - 1, 0) + guess
            start = 0 if first == 0 else start
            # What the chain of parts is for: a wrong guess shows where the part before ends.
            tally["right" if start == at else "wrong"] += 1
            size = chance.choice([8, 64, 1 << 20])
            part = read(data, width, start=at, stop=stop, size=size, line=line, dialect=dialect)
            rows += part.rows
            bad += part.bad
            at, line = part.end, part.line
        found = (rows, _same(bad, expected.bad), at)
        assert found == (expected.rows, expected.bad, expected.end), (data, cuts)
    return tally


def _same(found: list[tuple[int, bytes]], expected: list[tuple[int, bytes]]) -> Any:
    """Return bad records with the expected line where theirs is not compared."""
    lines = [line for line, _ in expected] + [0] * len(found)
    return [(line or other, raw) for (line, raw), other in zip(found, lines, strict=False)]


@pytest.mark.parametrize("dialect", [Dialect(), Dialect(escape=b"\\"), Dialect(quote=b"''")])
def test_a_value_full_of_quotes_takes_a_few_times_its_size(dialect: Dialect) -> None:
    value = dialect.quote * (400_001 // len(dialect.quote))
    tracemalloc.start()
    try:
        match = dialect.value.match(value)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert match is not None
    assert match.end() == len(value)
    # What is older has no possessive pattern that is right.
    assert most < (4 if sys.version_info >= (3, 11, 5) else 200) * len(value)


def test_blocks_with_many_quotes_are_read_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeload_jobs.sources.files.formats.csv.records._MOST_QUOTES", 1)

    tally = compare(11, many(50))

    assert tally["proven"]


def test_few_bytes_for_each_column_take_no_column_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b",".join(b"%d" % number for number in range(1000)) + b"\n"
    monkeypatch.setattr("pyarrow.csv.read_csv", None)

    assert read(data, 1000).rows == [(1, [str(number) for number in range(1000)])]
