"""Dumps of PostgreSQL and MariaDB, read from files: the database is the oracle, both ways."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.files.formats.csv.options import read_csv_options
from lakeload_jobs.sources.files.formats.csv.reader import dialect_of
from lakeload_jobs.sources.files.formats.csv.records import Dialect
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.text_tables import csv_table
from tests.unit.sources.files.formats.csv.dumps import tables, written

NUMBERS = [pytest.param(15), pytest.param(500, marks=pytest.mark.exhaustive)]
SQL_TYPES = ("bigint", "text", "decimal(12,3)", "date", "timestamp", "double precision", "text")
TYPES = ("bigint", "string", "decimal(12,3)", "date", "timestamp_ntz", "double", "string")
SIGNS = [*"\\\\\\NntbZ01.\"'|,;\t\n\n\r\x01 -", "\r\n", "\\N", "\\.", "é", "\U0001f600"]
Rows = list[list[Any]]


def texts(chance: random.Random) -> str:
    """Return a text of the signs that mean something, and of all others but a zero byte."""
    signs = [*SIGNS, *(chr(chance.randrange(1, 256)) for _ in range(8))]
    return "".join(chance.choices(signs, k=chance.randint(0, 7)))


def random_rows(chance: random.Random) -> Rows:
    """Return rows of `SQL_TYPES`."""
    day = date(1970, 1, 1) + timedelta(chance.randint(-9000, 9000))
    moment = datetime(2024, 2, 29) + timedelta(seconds=chance.randint(-(10**8), 10**8))
    return [
        [
            number,
            *(
                chance.choice([value, value, value, None])
                for value in (
                    texts(chance),
                    Decimal(chance.randint(-(10**9), 10**9)).scaleb(-3),
                    day,
                    moment,
                    chance.random() * 10 ** chance.randint(-9, 9),
                    texts(chance),
                )
            ),
        ]
        for number in range(chance.randint(1, 30))
    ]


def read(path: Path, options: Mapping[str, Any], types: Sequence[str]) -> Rows:
    """Read a file in parts of any size."""

    def scan(work: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
        return [work(part) for part in parts]

    kinds = {f"_c{place}": kind for place, kind in enumerate(types)}
    given = {"backslash_escapes": "true", **options}
    assert read_csv_options(given)[1] == []
    files = tuple(local_files([str(path)]))
    table = csv_table(files, given, ColumnsSpec(types=kinds)).split(scan, Parallelism(3, 64, 16))
    return [
        list(row.values())
        for part in table.splits.parts
        for batch in table.splits.read(part)
        for row in batch.to_pylist()
    ]


def _dialect(options: Mapping[str, Any]) -> Dialect:
    return dialect_of(read_csv_options({"backslash_escapes": "true", **options})[0])


@pytest.mark.parametrize("number", NUMBERS)
def test_copy_of_random_tables_is_read_as_the_table_is(
    database: Database, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "dump.txt"
    columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(SQL_TYPES))
    database.run(f"CREATE TABLE t ({columns})")
    for seed in range(number):
        chance = random.Random(seed)  # noqa: S311
        rows, separator = random_rows(chance), chance.choice("\t|,;\x01")
        database.run("TRUNCATE t")
        with database.admin.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO t VALUES ({', '.join(['%s'] * len(SQL_TYPES))})".encode(), rows
            )
            statement = f"COPY (SELECT * FROM t ORDER BY c0) TO STDOUT {delimiter(separator)}"
            with cursor.copy(statement.encode()) as copy, path.open("wb") as file:
                file.writelines(copy)
                file.write(chance.choice([b"", b"\\.\n"]))
        stored = [list(row) for row in database.run("SELECT * FROM t ORDER BY c0")]

        found = read(path, {"separator": separator}, TYPES)

        assert found == stored == rows, (seed, path.read_bytes())


@pytest.mark.parametrize("number", NUMBERS)
def test_copy_reads_random_files_as_they_are_read_here(
    database: Database, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "dump.txt"
    for seed in range(number):
        chance = random.Random(seed)  # noqa: S311
        separator, line_break = chance.choice("\t|,;\x01"), chance.choice(["\n", "\r\n"])
        options = {"separator": separator, "line_break": line_break}
        rows = without_zeros(tables(chance, _dialect(options)))
        # What stands for itself in all of the dumps has other meanings here.
        content = written(rows, _dialect(options), chance, letters="bfnrtv", raw="")
        path.write_bytes(content.encode())
        columns = ", ".join(f"c{place} text" for place in range(len(rows[0])))
        database.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t (n serial, {columns})")
        names = ", ".join(f"c{place}" for place in range(len(rows[0])))
        with (
            database.admin.cursor() as cursor,
            cursor.copy(f"COPY t ({names}) FROM STDIN {delimiter(separator)}".encode()) as copy,
        ):
            copy.write(path.read_bytes())
        stored = [list(row) for row in database.run(f"SELECT {names} FROM t ORDER BY n")]

        found = read(path, options, ["string"] * len(rows[0]))

        assert found == stored == rows, (seed, content)


def delimiter(separator: str) -> str:
    """Return the option of COPY."""
    return f"(DELIMITER E'\\x{ord(separator):02x}')"


def without_zeros(rows: list[list[str | None]]) -> list[list[str | None]]:
    """Return rows as PostgreSQL can have them."""
    return [[value and value.replace("\0", "0") for value in row] for row in rows]


def maria_options(chance: random.Random) -> dict[str, Any]:
    """Return options of files that MariaDB writes."""
    quote = chance.choice(["", "", '"', "'"])
    separator = chance.choice(["\t", "|", ",", ";", "\x01", "||"])
    line_break = chance.choice(["\n", "\n", "\r\n"])
    return {"separator": separator, "line_break": line_break} | ({"quote": quote} if quote else {})


def maria_format(options: Mapping[str, Any], *, optionally: bool) -> str:
    """Return these options in SQL."""
    enclosed = ""
    if "quote" in options:
        enclosed = f"{'OPTIONALLY ' * optionally}ENCLOSED BY 0x{options['quote'].encode().hex()} "
    return (
        f"FIELDS TERMINATED BY 0x{options['separator'].encode().hex()} {enclosed}"
        f"LINES TERMINATED BY 0x{options['line_break'].encode().hex()}"
    )


@pytest.mark.parametrize("number", NUMBERS)
def test_outfile_of_random_tables_is_read_as_the_table_is(
    maria: MariaDatabase, tmp_path: Path, number: int
) -> None:
    columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(SQL_TYPES))
    columns = columns.replace("timestamp", "datetime")
    maria.run(f"CREATE TABLE t ({columns})")
    with closing(maria.server.connect(maria.input.name)) as session, session.cursor() as cursor:
        for seed in range(number):
            chance = random.Random(seed)  # noqa: S311
            rows, options = random_rows(chance), maria_options(chance)
            rows[0][1] = "\0" + (rows[0][1] or "") + "\0001"
            path = tmp_path / f"{seed}.txt"
            cursor.execute("DELETE FROM t")
            cursor.executemany(f"INSERT INTO t VALUES ({', '.join(['%s'] * len(SQL_TYPES))})", rows)
            how = maria_format(options, optionally=chance.random() < 0.5)
            cursor.execute(
                f"SELECT * FROM t ORDER BY c0 INTO OUTFILE '{path}' CHARACTER SET utf8mb4 {how}"
            )
            cursor.execute("SELECT * FROM t ORDER BY c0")
            stored = [list(row) for row in cursor.fetchall()]

            found = read(path, options, TYPES)

            assert found == stored, (seed, path.read_bytes())


@pytest.mark.parametrize("number", NUMBERS)
def test_load_data_reads_random_files_as_they_are_read_here(
    maria: MariaDatabase, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "dump.txt"
    settings: dict[str, Any] = {"local_infile": True}
    with (
        closing(maria.server.connect(maria.input.name, **settings)) as session,
        session.cursor() as cursor,
    ):
        for seed in range(number):
            chance = random.Random(seed)  # noqa: S311
            options = maria_options(chance)
            rows = tables(chance, _dialect(options))
            content = written(rows, _dialect(options), chance, letters="0Zbnrt")
            path.write_bytes(content.encode())
            names = ", ".join(f"c{place}" for place in range(len(rows[0])))
            columns = ", ".join(f"c{place} text" for place in range(len(rows[0])))
            cursor.execute("DROP TABLE IF EXISTS t")
            cursor.execute(f"CREATE TABLE t (n int AUTO_INCREMENT PRIMARY KEY, {columns})")
            how = maria_format(options, optionally=True)
            cursor.execute(
                f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE t CHARACTER SET utf8mb4 "
                f"{how} ({names})"
            )
            cursor.execute(f"SELECT {names} FROM t ORDER BY n")
            stored = [list(row) for row in cursor.fetchall()]

            found = read(path, options, ["string"] * len(rows[0]))

            assert found == stored == rows, (seed, content)
