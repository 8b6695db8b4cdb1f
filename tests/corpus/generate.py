"""Writes the corpus: `python -m tests.corpus.generate`, with pandas and polars installed besides.

Each case is a file, or a few, with the options it is read with, and what is to be read: `rows` are
texts by the oracle, and each value must say exactly what its text says; `values` are the values as
text, for options that say how text is written; `refused` files must not be loaded, and the message
names the line.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import shutil
import string
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

from tests.corpus.oracle import Refused, csv_rows, json_records

HERE = Path(__file__).parent
FILES, EXPECTED = HERE / "files", HERE / "expected"


@dataclass(frozen=True)
class Case:
    """One case of the corpus. What is None is computed by the oracle."""

    name: str
    by: str
    content: Mapping[str, bytes]
    options: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] | None = None
    rows: Sequence[Sequence[str | None]] | None = None
    values: Sequence[Sequence[str | None]] | None = None
    refused: str | None = None
    line: int | None = None
    kinds: Sequence[str] | None = None

    def expected(self) -> dict[str, Any]:
        """Return the case as it is stored."""
        stored: dict[str, Any] = {"name": self.name, "by": self.by, "files": [*self.content]}
        for key in ("options", "types"):
            if getattr(self, key):
                stored[key] = dict(getattr(self, key))
        if self.kinds is not None:
            stored["kinds"] = list(self.kinds)
        names, rows, refused, line = self.names, self.rows, self.refused, self.line
        if refused is None and rows is None and self.values is None:
            (content,) = self.content.values()
            found = csv_rows(content, self.options)
            if isinstance(found, Refused):
                refused, line = "", found.line
            else:
                own_names, rows = found
                names = names or own_names
        if refused is not None:
            return {**stored, "refused": refused, "line": line}
        key, value = ("rows", rows) if self.values is None else ("values", self.values)
        return {**stored, "names": names, key: value}


# Tables

Table = dict[str, list[Any]]
_draw = random.Random(20240229)  # noqa: S311
_WORDS = (
    *("plain", "with, comma", 'say "hi"', "two\nlines", "crlf\r\nin it", "tab\there", " blank "),
    *("naïve café", "日本語", "🚀 emoji", "NULL", "NA", "nan", "None", "\\N", "semi;colon"),
    *("pipe|", "it's", "back\\slash", "a,b\nc,d\n1,2", '""', "-", "#no comment", "\u2028"),
    "x" * 300,
)  # fmt: skip


def _tables() -> dict[str, Table]:
    n = 24
    start = datetime(2020, 2, 28, 23, 59, 59)
    moments = [start + timedelta(seconds=_draw.randrange(10**8)) for _ in range(n)]
    micros = [moment.replace(microsecond=_draw.randrange(10**6)) for moment in moments]
    days = [moment.date() for moment in moments]
    days[:3] = [date(2024, 2, 29), date(1970, 1, 1), date(2999, 12, 31)]
    floats = [_draw.uniform(-1, 1) * 10 ** _draw.randint(-3, 9) for _ in range(n)]
    return {
        "integers": {
            "id": list(range(1, n + 1)),
            "amount": [_draw.randint(-(10**6), 10**6) for _ in range(n)],
            "big": [9223372036854775807, -9223372036854775808,
                    *(_draw.randint(-(2**62), 2**62) for _ in range(n - 2))],
        },
        "floats": {
            "id": list(range(n)),
            "random": floats,
            "short": [round(value, 2) for value in floats],
            "whole": [float(round(value)) for value in floats],
        },
        "money": {
            "id": list(range(n)),
            "price": [Decimal(_draw.randint(0, 10**6)).scaleb(-2) for _ in range(n)],
            "zeros": [Decimal(_draw.randint(0, 99)).scaleb(-1).quantize(Decimal("0.001"))
                      for _ in range(n)],
        },
        "long_decimals": {
            "id": list(range(n)),
            "exact": [Decimal(_draw.randint(10**36, 10**37)).scaleb(-18) for _ in range(n)],
            "whole": [Decimal(_draw.randint(10**30, 10**37)) for _ in range(n)],
        },
        "texts": {
            "id": list(range(len(_WORDS))), "text": list(_WORDS), "again": list(_WORDS[::-1]),
        },
        "codes": {
            "zip": [f"{_draw.randrange(10**5):05d}" for _ in range(n)],
            "phone": [f"+4930{_draw.randrange(10**7)}" for _ in range(n)],
            "version": [f"{_draw.randrange(9)}.{_draw.randrange(20)}.{_draw.randrange(9)}"
                        for _ in range(n)],
            "hash": ["1e5", "12e40", "0x1F", "00e1", "1E400", "deadbeef",
                     *(f"{_draw.getrandbits(64):016x}" for _ in range(n - 6))],
            "week": [f"2024-W{_draw.randint(1, 52):02d}" for _ in range(n)],
            "month": [f"2024-{_draw.randint(1, 12):02d}" for _ in range(n)],
            "iban": [f"DE{_draw.randrange(10**20):020d}" for _ in range(n)],
        },
        "days": {"id": list(range(n)), "day": days, "other": days[::-1]},
        "moments": {"id": list(range(n)), "at": micros, "second": moments},
        "instants": {"id": list(range(n)), "at": [at.replace(tzinfo=UTC) for at in micros]},
        "booleans": {"id": list(range(n)), "flag": [_draw.random() < 0.5 for _ in range(n)]},
        "nulls": {
            "id": list(range(n)),
            "number": [None if place % 3 else place for place in range(n)],
            "text": [None if place % 4 == 0 else f"t{place}" for place in range(n)],
            "day": [None if place % 5 == 0 else days[place] for place in range(n)],
            "flag": [None if place % 2 else True for place in range(n)],
            "real": [None if place % 7 == 0 else place + 0.5 for place in range(n)],
        },
        "times": {
            "id": list(range(n)),
            "at": [time(_draw.randrange(24), _draw.randrange(60), _draw.randrange(60))
                   for _ in range(n)],
        },
        "one_column": {"word": [f"w{_draw.randrange(99)}" for _ in range(n)]},
        "wide": {f"c{place}": [place, place + 1] for place in range(150)},
    }  # fmt: skip


def _arrow(table: Table) -> pa.Table:
    kinds = {Decimal: pa.decimal128(38, 18)}
    columns = {}
    for name, values in table.items():
        first = next((value for value in values if value is not None), None)
        kind = kinds.get(type(first)) if first is not None else None
        if kind is not None and name != "exact":
            kind = pa.decimal128(38, max(-value.as_tuple().exponent for value in values))
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


# Writers: each returns bytes and the options to read them with.

Written = tuple[bytes, dict[str, str]]
_HEADER = {"header": "true"}


def _python(**dialect: Any) -> Callable[[Table], Written]:
    def write(table: Table) -> Written:
        out = io.StringIO(newline="")
        writer = csv.writer(out, **{"lineterminator": "\n", **dialect})
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        options = dict(_HEADER)
        if dialect.get("delimiter", ",") != ",":
            options["separator"] = dialect["delimiter"].replace("\t", "\\t")
        if "quotechar" in dialect:
            options["quote"] = dialect["quotechar"]
        return out.getvalue().encode(), options

    return write


def _pyarrow(**how: Any) -> Callable[[Table], Written]:
    def write(table: Table) -> Written:
        out = io.BytesIO()
        options = pa_csv.WriteOptions(**how)
        pa_csv.write_csv(_arrow(table), out, options)
        read = {**_HEADER}
        if "delimiter" in how:
            read["separator"] = how["delimiter"].replace("\t", "\\t")
        return out.getvalue(), read

    return write


def _duckdb(how: str, **read: str) -> Callable[[Table], Written]:
    def write(table: Table) -> Written:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.csv"
            connection = duckdb.connect()
            connection.execute("SET TimeZone='UTC'")
            connection.register("t", _arrow(table))
            connection.execute(f"COPY t TO '{path}' (FORMAT CSV, {how})")
            return path.read_bytes(), {"header": "true", **read}

    return write


def _pandas(read: Mapping[str, str] | None = None, **how: Any) -> Callable[[Table], Written]:
    def write(table: Table) -> Written:
        frame = pd.DataFrame({name: pd.Series(values) for name, values in table.items()})
        return frame.to_csv(**how).encode(), {**_HEADER, **(read or {})}

    return write


def _polars(read: Mapping[str, str] | None = None, **how: Any) -> Callable[[Table], Written]:
    def write(table: Table) -> Written:
        frame = pl.from_arrow(_arrow(table))
        assert isinstance(frame, pl.DataFrame)
        return frame.write_csv(**how).encode(), {**_HEADER, **(read or {})}

    return write


def _r(separator: str = ",", row_names: bool = True) -> Callable[[Table], Written]:
    """`write.csv` of R: texts and names in quotes, NA for what is missing, TRUE and FALSE."""

    def shown(value: Any) -> str:
        if value is None:
            return "NA"
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, (int, float, Decimal)):
            return str(value)
        return '"' + str(value).replace('"', '""') + '"'

    def write(table: Table) -> Written:
        names = [f'"{name}"' for name in table]
        lines = [separator.join(['""', *names] if row_names else names)]
        for number, row in enumerate(zip(*table.values(), strict=True), start=1):
            cells = [shown(value) for value in row]
            lines.append(separator.join([f'"{number}"', *cells] if row_names else cells))
        options = {**_HEADER, "null_values": "NA"}
        if separator != ",":
            options["separator"] = separator
        return ("\n".join(lines) + "\n").encode(), options

    return write


def _excel(table: Table) -> Written:
    """ "CSV UTF-8" of Excel where the decimal mark is a comma."""
    content, options = _python(delimiter=";", lineterminator="\r\n")(table)
    return b"\xef\xbb\xbf" + content, options


def _excel_unicode(table: Table) -> Written:
    """ "Unicode text" of Excel."""
    content, options = _python(delimiter="\t", lineterminator="\r\n")(table)
    return content.decode().encode("utf-16"), options


def _mysql(table: Table) -> Written:
    """`INTO OUTFILE … FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"'`."""

    def shown(value: Any) -> str:
        if value is None:
            return "\\N"
        if isinstance(value, str):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return str(int(value)) if isinstance(value, bool) else str(value)

    rows = [",".join(map(shown, row)) for row in zip(*table.values(), strict=True)]
    content = ",".join(table) + "\n" + "\n".join(rows) + "\n"
    return content.encode(), {**_HEADER, "escape": "\\", "null_values": "\\N"}


def _mysql_text(value: Any) -> str | None:
    """`csv` does not know `\\N`."""
    if value is None or value == "":
        return None
    return str(int(value)) if isinstance(value, bool) else str(value)


_WRITERS: dict[str, tuple[str, Callable[[Table], Written]]] = {
    "python": ("Python csv", _python()),
    "python_quoted": ("Python csv", _python(quoting=csv.QUOTE_ALL, lineterminator="\r\n")),
    "python_tsv": ("Python csv", _python(delimiter="\t")),
    "python_pipe": ("Python csv", _python(delimiter="|", quotechar="'")),
    "pyarrow": ("pyarrow", _pyarrow()),
    "pyarrow_quoted": ("pyarrow", _pyarrow(quoting_style="all_valid", delimiter=";")),
    "duckdb": ("DuckDB", _duckdb("HEADER")),
    "duckdb_quoted": ("DuckDB", _duckdb("HEADER, FORCE_QUOTE *")),
    "duckdb_tsv": ("DuckDB", _duckdb("HEADER, DELIM '\t', NULLSTR '\\N'", separator="\\t",
                                     null_values="\\N")),
    "duckdb_bare": ("DuckDB", _duckdb("HEADER false", header="false")),
    "pandas": ("pandas", _pandas(index=False)),
    "pandas_index": ("pandas", _pandas()),
    "pandas_na": ("pandas", _pandas({"null_values": "missing"}, index=False, na_rep="missing",
                                    quoting=csv.QUOTE_NONNUMERIC)),
    "polars": ("polars", _polars()),
    "polars_quoted": ("polars", _polars({"separator": ";"}, quote_style="always", separator=";")),
    "r": ("R's habits", _r()),
    "r_plain": ("R's habits", _r(";", row_names=False)),
    "excel": ("Excel's habits", _excel),
    "excel_unicode": ("Excel's habits", _excel_unicode),
    "mysql": ("MySQL's habits", _mysql),
}  # fmt: skip


def _written() -> Iterator[Case]:
    for table_name, table in _tables().items():
        for writer_name, (by, write) in _WRITERS.items():
            if table_name == "wide" and writer_name not in ("python", "duckdb_quoted", "polars"):
                continue
            if table_name == "texts" and writer_name == "mysql":
                continue
            content, options = write(table)
            name = f"{table_name}_{writer_name}"
            extension = "tsv" if options.get("separator") == "\\t" else "csv"
            case = Case(name, by, {f"{name}.{extension}": content}, options)
            if writer_name == "mysql":
                rows = [[_mysql_text(value) for value in row]
                        for row in zip(*table.values(), strict=True)]  # fmt: skip
                yield Case(name, by, {f"{name}.csv": content}, options, names=[*table], rows=rows)
                continue
            found = csv_rows(content, options)
            assert not isinstance(found, Refused), name
            if found[0][:1] == [""]:
                case = Case(name, by, case.content, options, names=["_", *found[0][1:]])
            yield case


# Files made by hand: one habit each.


def _one(
    name: str, content: str | bytes, by: str = "by hand", *, extension: str = "csv", **more: Any
) -> Case:
    data = content.encode() if isinstance(content, str) else content
    options = {**_HEADER, **more.pop("options", {})}
    return Case(name, by, {f"{name}.{extension}": data}, options, **more)


def _structure() -> Iterator[Case]:
    yield _one("empty", "", names=[], rows=[])
    yield _one("only_line_breaks", "\n\r\n\n", names=[], rows=[])
    yield _one("only_header", "id,name\n", names=["id", "name"], rows=[])
    yield _one("only_header_without_end", "id,name", names=["id", "name"], rows=[])
    yield _one("without_last_line_break", "id,name\n1,a\n2,b")
    yield _one("carriage_returns", "id,name\r1,a\r2,b\r")
    yield _one("mixed_line_ends", "id,name\n1,a\r\n2,b\r3,c\n")
    yield _one("blank_lines", "id,name\n\n1,a\n\n\n2,b\n\n")
    yield _one("blank_lines_of_one_column", "name\na\n\nb\n")
    yield _one("spaces_are_values", "id,name\n1, a \n2,  \n")
    yield _one("quotes_within", 'id,size\n1,5" pipe\n2,7\'\n3,a"b"c\n')
    yield _one("doubled_quotes", 'id,name\n1,"a ""b"""\n2,""""\n3,"""x"\n')
    yield _one("line_breaks_in_quotes", 'id,text\nk1,"Dear Sir,\nthank you, really"\nk2,plain\n')
    yield _one("csv_in_csv", 'id,text\n1,"a,b\n1,2\n""q"",3\n"\n2,"x\r\ny"\n')
    yield _one("quoted_header", '"id","first, last","a\nb"\n1,x,y\n')
    yield _one("unicode_line_separators", "id,name\n1,a\u2028b\x0b\x0c\x1c\x85c\n")
    yield _one("nul", "id,name\n1,a\0b\n")
    yield _one("long_value", f"id,name\n1,{'x' * 70_000}\n2,b\n")
    yield _one("long_quoted_value", 'id,name\n1,"' + "a,b\n" * 18_000 + '"\n2,b\n')
    yield _one("bom", b"\xef\xbb\xbfid,name\n1,a\n")
    yield _one("bom_and_quotes", b'\xef\xbb\xbf"id","name"\n1,a\n')
    yield _one("no_header", "1,a\n2,b\n", options={"header": "false"})
    yield _one("twins", "id,name,name,NAME\n1,a,b,c\n",
               names=["id", "name", "name_1", "NAME"], rows=[["1", "a", "b", "c"]])  # fmt: skip
    yield _one("empty_names", "id,,\n1,a,b\n", names=["id", "_", "_1"], rows=[["1", "a", "b"]])
    yield _one("comments", "# by hand\nid,name\n1,a\n#2,b\n3,#c\n", options={"comment": "#"},
               names=["id", "name"], rows=[["1", "a"], ["3", "#c"]])  # fmt: skip
    yield _one("skipped_rows", "Report\nof 2024, all\nid,name\n1,a\n", options={"skip_rows": "2"},
               names=["id", "name"], rows=[["1", "a"]])  # fmt: skip
    yield _one("trailing_separators", "id,name,\n1,a,\n2,b,\n",
               options={"trailing_separator": "true"},
               names=["id", "name"], rows=[["1", "a"], ["2", "b"]])  # fmt: skip
    yield _one("trimmed", "id , name\n 1, a \n2 ,b\n",
               options={"trim_left": "true", "trim_right": "true"},
               names=["id", "name"], rows=[["1", "a"], ["2", "b"]])  # fmt: skip
    yield _one("two_signs", "id||name\n1||a|b\n", options={"separator": "||"},
               names=["id", "name"], rows=[["1", "a|b"]])  # fmt: skip
    yield _one("no_quotes", 'id,name\n1,"a\n2,b"\n', options={"quote": ""})
    yield _one("quoted_empty_text", 'id,name\n1,""\n2,\n', options={"quoted_empty": "TEXT"},
               names=["id", "name"], rows=[["1", ""], ["2", None]])  # fmt: skip
    yield _one("quoted_empty_null", 'id,name\n1,""\n2,\n')
    yield _one("null_values", "id,a\n1,NA\n2,-\n3,x\n", options={"null_values": '["NA", "-"]'},
               names=["id", "a"], rows=[["1", None], ["2", None], ["3", "x"]])  # fmt: skip
    yield _one("escaped_quotes", 'id,name\n1,"a \\"b\\""\n', options={"escape": "\\"})
    yield _one("short_row", "id,name\n1,a\n2\n3,c\n")
    yield _one("long_row", "id,name\n1,a\n2,b,c\n")
    yield _one("long_row_after_line_breaks", 'id,name\n1,"a\n\nb"\n2,b,c\n')
    yield _one("trailing_separator_in_rows", "id,name\n1,a,\n2,b,\n")
    yield _one("text_after_quote", 'id,name\n1,a\n2,"b"c\n')
    yield _one("space_after_quote", 'id,name\n1,"b" ,\n', refused="", line=2)
    yield _one("unclosed_quote", 'id,name\n1,a\n2,"b\n3,c\n4,d\n')
    yield _one("unclosed_quote_of_right_width", 'id,name\n1,"a\n2,b\n')
    yield _one("sep_line", "sep=;\nid;name\n1;a\n", "Excel's habits", options={"separator": ";"},
               refused="sep=", line=None)  # fmt: skip
    yield _one("other_separator", "id;name\n1;a\n2;b,c\n")


def _encodings() -> Iterator[Case]:
    text = "id,city\n1,Nördlingen\n2,Zürich\n"
    for encoding in ("latin-1", "windows-1252", "utf-16-le", "utf-16-be", "cp437", "iso-8859-15"):
        yield _one(f"declared_{encoding}", text.encode(encoding), options={"encoding": encoding})
    many = {"shift_jis": "id,都市\n1,東京\n2,大阪\n", "gb18030": "id,城市\n1,北京\n",
            "koi8-r": "id,город\n1,Москва\n", "euc-kr": "id,도시\n1,서울\n",
            "windows-1251": "id,город\n1,Минск\n", "big5": "id,城市\n1,臺北\n"}  # fmt: skip
    for encoding, text in many.items():
        yield _one(f"declared_{encoding}", text.encode(encoding), options={"encoding": encoding})
    euro = "id,price\n1,5 €\n".encode("windows-1252")
    yield _one("declared_euro", euro, options={"encoding": "windows-1252"})
    yield _one("utf16_with_mark", "id,name\n1,é🚀\n".encode("utf-16"))
    yield _one("utf16_be_with_mark", b"\xfe\xff" + "id,name\n1,é\n".encode("utf-16-be"))
    yield _one("latin1_as_utf8", "id,city\n1,Bonn\n2,Köln\n".encode("latin-1"))
    yield _one("cp1252_as_utf8", "id,a\n1,x\n2,y\n3,5 €\n".encode("windows-1252"))
    yield _one("cut_utf8", b"id,a\n1,x\n2,\xc3\n")
    yield _one("overlong_utf8", b"id,a\n1,\xc0\xaf\n")
    yield _one("surrogate_in_utf8", b"id,a\n1,\xed\xa0\x80\n")
    yield _one("wrong_cp1252", b"id,a\n1,\x81\n", options={"encoding": "windows-1252"})


def _compressed() -> Iterator[Case]:
    text = b"id,name\n1,a\n2,b\n"
    rows: Any = {"names": ["id", "name"], "rows": [["1", "a"], ["2", "b"]]}
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    packed = {
        "gz": gzip.compress(text, mtime=0),
        "bz2": bz2.compress(text),
        "xz": lzma.compress(text),
        "zst": sink.getvalue().to_pybytes(),
        "zip": _zip({"a.csv": text}),
    }
    for ending, content in packed.items():
        yield _one(f"packed_{ending}", content, extension=f"csv.{ending}", **rows)
        yield _one(f"packed_{ending}_without_its_ending", content, **rows)
    yield _one("two_members_of_gz", gzip.compress(text, mtime=0) + gzip.compress(b"3,c\n", mtime=0),
               extension="csv.gz", names=["id", "name"],
               rows=[["1", "a"], ["2", "b"], ["3", "c"]])  # fmt: skip
    yield _one("cut_gz", packed["gz"][:-9], extension="csv.gz", refused="", line=None)
    yield _one("text_called_gz", text, extension="csv.gz", **rows)
    yield _one("zip_of_two", _zip({"a.csv": text, "b.csv": text}), extension="zip",
               refused="", line=None)  # fmt: skip


def _zip(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


_COLUMNS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("times_of_day", "string", ("13:30", "2:05", "00:20:00")),
    ("times_with_t", "string", ("T09:00", "12:31:00.5")),
    ("year_months", "string", ("2024-01", "2024-12")),
    ("years", "int64", ("2024", "1999")),
    ("padded", "string", ("01234", "98765")),
    ("double_zero", "string", ("00", "1")),
    ("agent_numbers", "string", ("007", "7")),
    ("phones", "string", ("+49301234567", "+1 (555) 010-9999")),
    ("plus", "string", ("+5", "+7")),
    ("minus_zero", "string", ("-0", "1")),
    ("bigints", "int64", ("9223372036854775807", "-9223372036854775808")),
    ("beyond_bigint", "decimal128(38, 0)", ("9223372036854775808", "1")),
    ("beyond_decimal", "string", ("1" * 39, "1")),
    ("grown_integers", "int64", ("10", "20", "99999999999")),
    ("trailing_zeros", "double", ("10.50", "1.10", "7.00")),
    ("exponents", "double", ("1e5", "1.5E-3", "-2e0")),
    ("huge", "string", ("1e400", "1")),
    ("tiny", "string", ("1e-400", "1")),
    ("long_fraction", "string", ("0.12345678901234567890", "0.5")),
    ("long_number", "string", ("123456789012345678901234567890.12",)),
    ("beyond_exact", "string", ("9007199254740993.5", "1.5")),
    ("integers_and_fractions", "double", ("1", "2.5")),
    ("large_integers_and_fractions", "string", ("9007199254740993", "2.5")),
    ("bare_points", "double", (".5", "5.")),
    ("points", "string", (".", "1")),
    ("versions", "string", ("1.2.3", "1.10")),
    ("commas", "string", ("1,000", "2,500")),
    ("currencies", "string", ("$5", "7 €")),
    ("percents", "string", ("5%", "10%")),
    ("hexadecimal", "string", ("0x10", "0xFF")),
    ("underscores", "string", ("1_000", "2")),
    ("blank_numbers", "string", (" 5", "6 ")),
    ("not_numbers", "string", ("NaN", "nan")),
    ("words_as_numbers", "string", ("Infinity", "1")),
    ("booleans", "bool", ("true", "FALSE", "True")),
    ("letters_as_booleans", "string", ("t", "f")),
    ("yes_and_no", "string", ("yes", "no")),
    ("ones_and_zeros", "int64", ("1", "0")),
    ("booleans_and_numbers", "string", ("true", "1")),
    ("dates", "date32[day]", ("2024-02-29", "0001-01-01", "9999-12-31")),
    ("no_dates", "string", ("2023-02-29", "2024-01-01")),
    ("short_dates", "string", ("2024-1-5",)),
    ("german_dates", "string", ("05.01.2024",)),
    ("american_dates", "string", ("01/05/2024",)),
    ("compact_dates", "int64", ("20240105",)),
    ("two_digit_years", "string", ("24-01-05",)),
    ("local", "timestamp[us, tz=UTC]", ("2024-01-05 10:00:00", "2024-01-05T23:59:59.999999")),
    ("minutes", "timestamp[us, tz=UTC]", ("2024-01-05 10:00",)),
    ("zoned", "timestamp[us, tz=UTC]", ("2024-01-05T10:00:00Z", "2024-01-05T10:00:00+02:00")),
    ("offsets", "timestamp[us, tz=UTC]", ("2024-01-05 10:00:00.5-0530", "2024-01-05 10:00:00+01")),
    ("named_utc", "timestamp[us, tz=UTC]", ("2024-01-05 10:00:00 UTC",)),
    ("zone_names", "string", ("2024-01-05 10:00:00 Europe/Berlin",)),
    ("zoned_and_local", "string", ("2024-01-05T10:00:00Z", "2024-01-05T10:00:00")),
    ("dates_and_timestamps", "string", ("2024-01-05", "2024-01-05 10:00:00")),
    ("nanoseconds", "string", ("2024-01-05 10:00:00.123456789",)),
    ("zero_nanoseconds", "timestamp[us, tz=UTC]", ("2024-01-05 10:00:00.123456000",)),
    ("midnight_24", "string", ("2024-01-05 24:00:00",)),
    ("leap_second", "string", ("2016-12-31 23:59:60",)),
    ("epoch", "int64", ("1577836800123", "1577836800456")),
    ("uuids", "string", ("123e4567-e89b-12d3-a456-426614174000",)),
    ("durations", "string", ("P1D", "1 day")),
    ("ip_addresses", "string", ("10.0.0.1", "::1")),
    ("json", "string", ('{"a": 1}', "[1, 2]")),
    ("coordinates", "double", ("52.520008", "-13.404954")),
    ("numbers_then_text", "string", ("1", "2", "n/a")),
    ("text_then_numbers", "string", ("n/a", "1", "2")),
    ("full_width_digits", "string", ("１２",)),
    ("arabic_digits", "string", ("٥",)),
    ("thin_spaces", "string", ("1 000", "1\u202f000")),
)


def _inferred() -> Iterator[Case]:
    for name, kind, texts in _COLUMNS:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([("id", "v"), *enumerate(texts)])
        yield _one(f"column_{name}", out.getvalue(), kinds=["int64", kind])
        many = [*[("id", "v"), *((place, texts[0]) for place in range(2500))], *enumerate(texts)]
        if name in ("huge", "integers_and_fractions", "numbers_then_text", "no_dates"):
            out = io.StringIO(newline="")
            csv.writer(out, lineterminator="\n").writerows(many)
            yield _one(f"column_{name}_far_down", out.getvalue())


def _formats() -> Iterator[Case]:
    def made(name: str, lines: str, options: Mapping[str, str], values: list[str | None],
             **more: Any) -> Case:  # fmt: skip
        rows = [[str(place), value] for place, value in enumerate(values)]
        body = "".join(f"{place};{line}\n" for place, line in enumerate(lines.split("|")))
        return _one(f"format_{name}", f"id;v\n{body}", options={"separator": ";", **options},
                    names=["id", "v"], values=rows, **more)  # fmt: skip

    comma = {"decimal_mark": ","}
    yield made("decimal_comma", "1,5|-0,25|7", comma, ["1.5", "-0.25", "7.0"])
    yield made("german", "1.234,5|1.234.567|0,5", {**comma, "thousands_mark": "."},
               ["1234.5", "1234567.0", "0.5"])  # fmt: skip
    yield made("english", "1,234.5|1,234,567", {"thousands_mark": ","}, ["1234.5", "1234567.0"])
    yield made("swiss", "1'234.5|7", {"thousands_mark": "'"}, ["1234.5", "7.0"])
    yield made("thousands", "1.000|25.000", {**comma, "thousands_mark": "."}, ["1000", "25000"])
    yield made("wrong_thousands", "1.00|2", {**comma, "thousands_mark": "."}, ["1.00", "2"])
    yield made("german_date", "31.12.2024|01.02.2024", {"date_format": "dd.MM.yyyy"},
               ["2024-12-31", "2024-02-01"])  # fmt: skip
    yield made("american_date", "1/5/2024|12/31/2024", {"date_format": "M/d/yyyy"},
               ["2024-01-05", "2024-12-31"])  # fmt: skip
    yield made("named_month", "05-Jan-2024|29-FEB-2024", {"date_format": "dd-MMM-yyyy"},
               ["2024-01-05", "2024-02-29"])  # fmt: skip
    yield made("excel_time", "1/5/2024 1:30 PM|1/5/2024 12:00 AM",
               {"timestamp_format": "M/d/yyyy h:mm a"},
               ["2024-01-05 13:30:00+00:00", "2024-01-05 00:00:00+00:00"])  # fmt: skip
    yield made("apache", "05/Jan/2024:13:30:00 +0200",
               {"timestamp_format": "dd/MMM/yyyy:HH:mm:ss xx"},
               ["2024-01-05 11:30:00+00:00"])  # fmt: skip
    yield made("zone", "2024-07-01 12:00:00", {"time_zone": "Europe/Berlin"},
               ["2024-07-01 10:00:00+00:00"])  # fmt: skip
    yield made("nan", "n.d.|1.5", {"nan_value": "n.d."}, ["nan", "1.5"])
    yield made("infinity", "oo|1.5", {"positive_infinity": "oo"}, ["inf", "1.5"])
    yield made("strings", "007|1.50", {"infer": "STRINGS"}, ["007", "1.50"])
    yield made("full", "007|+5", {"infer": "FULL"}, ["7", "5"])
    yield made("full_decimal", "0.1234567890123456789|1.5", {"infer": "FULL"},
               ["0.1234567890123456789", "1.5000000000000000000"])  # fmt: skip


_DECLARED: tuple[tuple[str, str, str | None], ...] = (
    ("int", "007", "7"),
    ("int", "+5", "5"),
    ("int", "1.9", None),
    ("int", "0x10", None),
    ("int", "2147483648", None),
    ("tinyint", "128", None),
    ("smallint", "-32768", "-32768"),
    ("bigint", "1e3", None),
    ("double", "1.50", "1.5"),
    ("double", "1e400", None),
    ("double", "9007199254740993", "9007199254740992.0"),
    ("double", "NaN", "nan"),
    ("decimal(12,2)", "10.5", "10.50"),
    ("decimal(12,2)", "1.234", None),
    ("decimal(4,2)", "123", None),
    ("decimal(38,0)", "9" * 38, "9" * 38),
    ("boolean", "TRUE", "true"),
    ("boolean", "1", None),
    ("date", "2024-02-29", "2024-02-29"),
    ("date", "23:59", None),
    ("date", "2024-02-29 10:00", None),
    ("timestamp", "2024-02-29", "2024-02-29 00:00:00+00:00"),
    ("timestamp", "2024-02-29 10:00:00+02:00", "2024-02-29 08:00:00+00:00"),
    ("timestamp", "1577836800123", None),
    ("timestamp(ms)", "1577836800123", "2020-01-01 00:00:00.123000+00:00"),
    ("timestamp(s)", "1577836800", "2020-01-01 00:00:00+00:00"),
    ("timestamp", "10:00", None),
    ("timestamp_ntz", "2024-02-29 10:00", "2024-02-29 10:00:00"),
    ("timestamp_ntz", "2024-02-29 10:00Z", None),
    ("string", "007", "007"),
)


def _declared() -> Iterator[Case]:
    for number, (kind, text, value) in enumerate(_DECLARED):
        name = f"declared_{number:02d}_{''.join(c for c in kind if c in string.ascii_lowercase)}"
        content = f"id,v\n1,\n2,{text}\n"
        if value is None:
            yield _one(name, content, types={"v": kind}, refused=text, line=3)
        else:
            yield _one(name, content, types={"v": kind}, names=["id", "v"],
                       values=[["1", None], ["2", value]])  # fmt: skip


def _several() -> Iterator[Case]:
    def folder(name: str, *contents: str, **more: Any) -> Case:
        files = {f"{name}/{place}.csv": text.encode() for place, text in enumerate(contents)}
        return Case(name, "by hand", files, _HEADER, **more)

    yield folder("added_column", "id,a\n1,x\n", "id,a,b\n2,y,z\n", names=["id", "a", "b"],
                 rows=[["1", "x", None], ["2", "y", "z"]])  # fmt: skip
    yield folder("other_order", "id,a\n1,x\n", "a,id\ny,2\n", names=["id", "a"],
                 rows=[["1", "x"], ["2", "y"]])  # fmt: skip
    yield folder("missing_column", "id,a\n1,x\n", "id\n2\n", names=["id", "a"],
                 rows=[["1", "x"], ["2", None]])  # fmt: skip
    yield folder("widened", "id\n1\n", "id\n99999999999\n", "id\n2.5\n", names=["id"],
                 rows=[["1"], ["99999999999"], ["2.5"]])  # fmt: skip
    yield folder("number_then_text", "v\n01\n", "v\n2\n", names=["v"], rows=[["01"], ["2"]])
    yield folder("empty_file_between", "id\n1\n", "", "id\n2\n", names=["id"],
                 rows=[["1"], ["2"]])  # fmt: skip
    yield folder("broken_second", "id,a\n1,x\n", "id,a\n2,y\n3\n", refused="1.csv", line=3)


# JSON


@dataclass(frozen=True)
class JsonCase:
    """One JSON file. What is to be read is computed by the oracle unless it is given."""

    name: str
    by: str
    content: Mapping[str, bytes]
    file_format: str
    refused: str | None = None
    line: int | None = None

    def expected(self) -> dict[str, Any]:
        """Return the case as it is stored."""
        case: dict[str, Any] = {"name": self.name, "by": self.by, "files": [*self.content]}
        case["format"] = self.file_format
        refused, line = self.refused, self.line
        if refused is None:
            (content,) = self.content.values()
            records = json_records(content)
            if not isinstance(records, Refused):
                return {**case, "records": records}
            refused, line = "", records.line
        return {**case, "refused": refused, "line": line}


def _json_tables() -> dict[str, Table]:
    own = ("integers", "floats", "texts", "codes", "booleans", "nulls")
    tables = {name: table for name, table in _tables().items() if name in own}
    tables |= {name: table for name, table in _tables().items() if name in ("days", "moments")}
    tables = {
        name: {
            column: [str(value) if isinstance(value, date) else value for value in values]
            for column, values in table.items()
        }
        for name, table in tables.items()
    }
    tables["nested"] = {
        "id": [1, 2, 3],
        "place": [{"city": "Köln", "zip": "01234"}, {"city": None, "zip": "7"}, None],
        "tags": [["a", "b"], [], None],
        "lines": [
            [{"sku": "x", "qty": 1}, {"sku": "y", "qty": None}],
            [],
            [{"sku": "z", "qty": 3}],
        ],
    }
    return tables


def _records(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _duckdb_json(how: str) -> Callable[[Table], bytes]:
    def write(table: Table) -> bytes:
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
            path = Path(folder) / "x.json"
            connection.register("t", pa.table(table))
            connection.execute(f"COPY t TO '{path}' (FORMAT JSON{how})")
            return path.read_bytes()

    return write


def _lines(separator: str = "\n", **how: Any) -> Callable[[Table], bytes]:
    return lambda table: separator.join(
        json.dumps({key: value for key, value in record.items() if value is not None}, **how)
        for record in _records(table)
    ).encode()


_JSON_WRITERS: dict[str, tuple[str, str, Callable[[Table], bytes]]] = {
    "lines": ("Python json", "NDJSON", lambda table: _lines()(table) + b"\n"),
    "lines_utf8": ("Python json", "NDJSON", _lines("\r\n", ensure_ascii=False)),
    "lines_called_json": ("Python json", "JSON", _lines()),
    "stream": ("Firehose's habits", "JSON", _lines("")),
    "pretty_stream": ("jq's habits", "JSON", _lines("\n", indent=2, ensure_ascii=False)),
    "array": ("Python json", "JSON", lambda table: json.dumps(_records(table)).encode()),
    "pretty_array": ("Python json", "JSON",
                     lambda table: json.dumps(_records(table), indent="\t").encode()),
    "duckdb_lines": ("DuckDB", "NDJSON", _duckdb_json("")),
    "duckdb_array": ("DuckDB", "JSON", _duckdb_json(", ARRAY true")),
    "pandas_lines": ("pandas", "NDJSON", lambda table: pd.DataFrame(table).to_json(
        orient="records", lines=True, double_precision=15).encode()),
    "pandas_records": ("pandas", "JSON", lambda table: pd.DataFrame(table).to_json(
        orient="records", double_precision=15).encode()),
    "polars_lines": ("polars", "NDJSON", lambda table: pl.DataFrame(table).write_ndjson().encode()),
    "polars": ("polars", "JSON", lambda table: pl.DataFrame(table).write_json().encode()),
}  # fmt: skip


def _json_written() -> Iterator[JsonCase]:
    for table_name, table in _json_tables().items():
        for writer_name, (by, file_format, write) in _JSON_WRITERS.items():
            name = f"{table_name}_{writer_name}"
            extension = "ndjson" if file_format == "NDJSON" else "json"
            content = write(table)
            assert not isinstance(json_records(content), Refused), name
            yield JsonCase(name, by, {f"{name}.{extension}": content}, file_format)


_JSON_TEXTS: dict[str, str | bytes] = {
    "exact_fraction": '{"v": 1.10}\n{"v": 0.1}\n',
    "long_fraction": '{"v": 0.12345678901234567890}\n',
    "long_integer": '{"v": 123456789012345678901234567890}\n',
    "beyond_decimal": '{"v": 1234567890123456789012345678901234567890}\n',
    "bigints": '{"v": 9223372036854775807}\n{"v": -9223372036854775808}\n',
    "beyond_bigint": '{"v": 9223372036854775808}\n{"v": 1}\n',
    "exponents": '{"v": 1e5}\n{"v": 1.5E-3}\n',
    "huge": '{"v": 1e400}\n',
    "tiny": '{"v": 1e-400}\n',
    "minus_zero": '{"v": -0}\n{"v": -0.0}\n',
    "integers_and_fractions": '{"v": 1}\n{"v": 2.5}\n',
    "numbers_and_text": '{"v": 1.10}\n{"v": "x"}\n',
    "numbers_in_text": '{"v": "1.10"}\n{"v": "007"}\n',
    "booleans_and_numbers": '{"v": true}\n{"v": 1}\n',
    "objects_and_text": '{"v": {"z": 1, "a": 1.10}}\n{"v": "x"}\n',
    "lists_and_numbers": '{"v": [1, 2.50]}\n{"v": 1}\n',
    "lists_of_mixed": '{"v": [1, "x", null, {"a": 1}]}\n',
    "nulls_and_absent": '{"id": 1, "v": null}\n{"id": 2}\n{"id": 3, "v": 5}\n',
    "only_nulls": '{"id": 1, "v": null}\n',
    "other_keys": '{"a": 1}\n{"b": 2}\n{"a": 3, "b": 4}\n',
    "empty_objects": '{"id": 1, "v": {}}\n{}\n',
    "empty_lists": '{"id": 1, "v": []}\n',
    "nested_absent": '{"a": {"s": "x", "t": 1}}\n{"a": {"s": "y"}}\n',
    "key_order": '{"z": 1, "a": {"q": [1, {"x": 1.10}], "b": null}}\n',
    "escapes": '{"v": "\\u00e9\\ud83d\\ude80\\n\\t\\"\\\\\\/"}\n',
    "escaped_keys": '{"\\u00e9": 1, "a\\nb": 2}\n',
    "nul": '{"v": "a\\u0000b"}\n',
    "line_separators": '{"v": "a\u2028b"}\n',
    "braces_in_text": '{"v": "}{][,:"}\n{"v": "\\"}"}\n',
    "blank_lines": '\n{"v": 1}\n\n\n{"v": 2}\n\n',
    "blanks": ' \t{ "v" :\t1 , "w" : [ 1 , 2 ] } \r\n',
    "without_last_line_break": '{"v": 1}\n{"v": 2}',
    "bom": b'\xef\xbb\xbf{"v": 1}\n',
    "empty": "",
    "only_blanks": " \n\n",
    "long_value": json.dumps({"v": "x" * 70_000}) + "\n" + '{"v": "y"}\n',
    "deep": '{"v": ' + "[" * 40 + "]" * 40 + "}\n",
    "doubled_key": '{"v": 1}\n{"v": 1, "v": 2}\n',
    "doubled_key_within": '{"v": {"a": 1, "a": 2}}\n',
    "doubled_key_escaped": '{"a": 1, "\\u0061": 2}\n',
    "nan": '{"v": 1}\n{"v": NaN}\n',
    "infinity": '{"v": -Infinity}\n',
    "padded_number": '{"v": 01}\n',
    "plus": '{"v": +1}\n',
    "bare_point": '{"v": .5}\n',
    "hexadecimal": '{"v": 0x10}\n',
    "single_quotes": "{'v': 1}\n",
    "bare_key": "{v: 1}\n",
    "comment": '{"v": 1} // x\n',
    "trailing_comma": '{"v": 1,}\n',
    "trailing_comma_in_list": '{"v": [1,]}\n',
    "missing_colon": '{"v" 1}\n',
    "cut": '{"v": 1}\n{"v": "x',
    "cut_object": '{"v": 1}\n{"v": 2\n',
    "lone_surrogate": '{"v": "\\ud800"}\n',
    "wrong_surrogates": '{"v": "\\udc00\\ud800"}\n',
    "control_character": '{"v": "a\tb"}\n',
    "wrong_escape": '{"v": "\\x"}\n',
    "wrong_utf8": b'{"v": 1}\n{"v": "\xff"}\n',
    "latin1": '{"v": "Köln"}\n'.encode("latin-1"),
    "text_after": '{"v": 1}\nabc\n',
    "number_as_record": '{"v": 1}\n5\n',
    "null_as_record": '{"v": 1}\nnull\n',
    "wrong_word": '{"v": True}\n',
    "mismatched": '{"v": [1}\n',
}
_JSON_ARRAYS: dict[str, str] = {
    "array_of_one": '[{"v": 1}]',
    "array_empty": "[]",
    "array_with_blanks": ' [ \n {"v": 1} ,\n{"v": 2}\n ] \n',
    "array_without_comma": '[{"v": 1}{"v": 2}]',
    "array_with_two_commas": '[{"v": 1},,{"v": 2}]',
    "array_with_last_comma": '[{"v": 1},]',
    "array_cut": '[{"v": 1},\n{"v": 2}',
    "array_and_more": '[{"v": 1}]\n{"v": 2}',
    "array_of_numbers": "[1, 2]",
    "array_with_null": '[{"v": 1}, null]',
    "array_closed_wrongly": '[{"v": 1}}',
    "one_object": '{"v": 1}',
    "one_pretty_object": '{\n  "v": 1,\n  "w": {\n    "x": 2\n  }\n}\n',
    "objects_on_one_line": '{"v": 1}{"v": 2} {"v": 3}',
    "number": "5",
    "text": '"abc"',
    "html": "<html></html>",
}


def _json_by_hand() -> Iterator[JsonCase]:
    for name, text in _JSON_TEXTS.items():
        content = text.encode() if isinstance(text, str) else text
        yield JsonCase(f"lines_{name}", "by hand", {f"lines_{name}.ndjson": content}, "NDJSON")
        if b"\n" in content.strip():
            stream = {f"stream_{name}.json": content}
            yield JsonCase(f"stream_{name}", "by hand", stream, "JSON")
    for name, text in _JSON_ARRAYS.items():
        yield JsonCase(name, "by hand", {f"{name}.json": text.encode()}, "JSON")


def cases() -> dict[str, list[Case] | list[JsonCase]]:
    """Return the cases of each folder of files."""
    return {
        "csv_written": [*_written()],
        "csv_structure": [*_structure(), *_encodings(), *_compressed(), *_several()],
        "csv_values": [*_inferred(), *_formats(), *_declared()],
        "json_written": [*_json_written()],
        "json_by_hand": [*_json_by_hand()],
    }


def main() -> None:
    """Write all files anew."""
    written = cases()
    for folder in (FILES, EXPECTED):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for folder_name, found in written.items():
        names = [case.name for case in found]
        assert len({*names}) == len(names), "two cases have one name"
        lines = []
        for case in found:
            for name, content in case.content.items():
                path = FILES / folder_name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            lines.append(json.dumps(case.expected()))
        expected = EXPECTED / f"{folder_name}.jsonl"
        expected.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
