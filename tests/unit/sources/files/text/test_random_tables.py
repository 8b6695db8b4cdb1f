"""Random tables that other libraries write as CSV are read back as they were."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.environments import many
from tests.text_tables import csv_table

_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from(',"\n\r;'),
    min_size=1,
    max_size=8,
)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), _FLOATS),
    "decimal": (pa.decimal128(20, 4), st.decimals(-(10**15), 10**15, places=4)),
    "text": (pa.string(), _TEXT),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "local": (pa.timestamp("us"), st.datetimes()),
    "instant": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of one to four columns; the first has no null, so that no line is empty."""
    kinds = draw(st.lists(st.sampled_from([*_VALUES]), min_size=1, max_size=4))
    rows = draw(st.integers(0, 6))
    arrays: dict[str, Any] = {"id": pa.array(range(rows), pa.int64())}
    for place, name in enumerate(kinds):
        kind, values = _VALUES[name]
        column = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays[f"c{place}"] = pa.array(column, kind)
    return pa.table(arrays)


def _python(table: pa.Table, **dialect: Any) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, **dialect)
    writer.writerow(table.column_names)
    writer.writerows(row.values() for row in table.to_pylist())
    return out.getvalue().encode()


def _pyarrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pa_csv.write_csv(table, out)
    return out.getvalue()


def _duckdb(table: pa.Table) -> bytes:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "x.csv"
        connection.execute("SET TimeZone='UTC'")
        connection.register("t", table)
        connection.execute(f"COPY t TO '{path}' (FORMAT CSV, HEADER, FORCE_QUOTE *)")
        return path.read_bytes()


def _here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def _read(content: bytes, options: Mapping[str, str]) -> list[list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(content)
        given = {"header": "true", **options}
        table = csv_table(tuple(local_files([str(path)])), given).split(_here)
        batches = [batch for part in table.splits.parts for batch in table.splits.read(part)]
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


def _same(read: Any, value: Any) -> bool:
    """Return whether what was read is the value, as itself or as its text."""
    if value is None or read is None:
        return read is value
    if isinstance(value, str):
        return _same_text(read, value)
    if isinstance(value, bool):
        return read is value
    if isinstance(value, float | int | Decimal):
        return Decimal(str(read)) == Decimal(str(value))
    if isinstance(value, datetime):
        moment = datetime.fromisoformat(read) if isinstance(read, str) else read
        return moment.replace(tzinfo=UTC) == value.replace(tzinfo=UTC)
    return bool(read in (value, value.isoformat()))


def _same_text(read: Any, text: str) -> bool:
    """Return whether a column of texts that all look like another type says the same."""
    if isinstance(read, bool):
        return str(read).lower() == text.lower()
    if isinstance(read, float | int | Decimal):
        return Decimal(str(read)) == Decimal(text)
    if isinstance(read, datetime):
        moment = datetime.fromisoformat(text)
        return read == (moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return str(read) == text


_WRITERS: dict[str, tuple[Callable[[pa.Table], bytes], dict[str, str]]] = {
    "python": (_python, {}),
    "python_semicolons": (
        # Without quotes Python leaves a carriage return that its line ends do not have.
        lambda table: _python(table, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL),
        {"separator": ";"},
    ),
    "pyarrow": (_pyarrow, {}),
    "duckdb": (_duckdb, {}),
}


@pytest.mark.parametrize("writer", _WRITERS)
@settings(max_examples=many(25), deadline=None)
@given(table=tables())
def test_random_tables_are_read_back(writer: str, table: pa.Table) -> None:
    write, options = _WRITERS[writer]
    content = write(table)
    rows = _read(content, options)
    expected = [list(row.values()) for row in table.to_pylist()]
    assert len(rows) == len(expected), content
    for row, values in zip(rows, expected, strict=True):
        for read, value in zip(row, values, strict=True):
            assert _same(read, value), (read, value, content)
