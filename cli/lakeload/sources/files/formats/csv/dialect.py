"""Detection of a CSV file's dialect, from the beginning of the file."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from lakeload.sources.files.formats.base import Confidence, Guess, OptionValue
from lakeload.sources.files.formats.text import NULL_TEXTS
from lakeload_jobs.sources.files.formats.csv.backslashes import LETTERS, NULL
from lakeload_jobs.sources.files.formats.csv.records import Dialect, Record, records


@dataclass(frozen=True)
class DetectedDialect:
    """How a file is written: `guesses` in the order of the options, and warnings."""

    guesses: tuple[Guess, ...]
    warnings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Names of columns that the file has in a way that no option reads."""

    @property
    def options(self) -> dict[str, OptionValue]:
        """The reader options that are needed: those whose value is not the default."""
        is_dump = any(guess.option == "backslash_escapes" for guess in self.guesses)
        defaults = {**_DEFAULTS, "quote": ""} if is_dump else _DEFAULTS
        return {
            guess.option: guess.value
            for guess in self.guesses
            if guess.value != defaults.get(guess.option)
        }


_DEFAULTS: dict[str, OptionValue] = {"separator": ",", "quote": '"', "header": False}
_MOST_RECORDS = 2000
_SEPARATORS = (",", "\t", ";", "|", "\x01", "\x1f", "^", "~", "::", "||", ":", " ")
_WEAK = {":": 3, " ": 3}
"""Signs that text is full of, and how many values a record needs before they count."""
_SKIPPED_COUNT = 3
"""Lines before the table speak against a reading, but less than lines that do not fit within it."""
_MOST_BEFORE = 50
"""Records that may stand before the table."""
_MORE = 10
"""Well quoted records for each badly quoted one, from which on quotes have a meaning."""
_SLIPS = 3
"""Badly quoted records at most: text that was never quoted has more."""
_MEANINGFUL = 0.05
"""Score factor of a reading without quotes where quotes have a meaning."""
_MOST = 0.9
"""The share of records that have to fit a header that does not."""
_FEWEST = 2
"""Rows that names of rows need, to differ."""
_SHOWN = 40
"""Characters of a skipped line that are shown."""
_LONG = 12
"""Texts of so many characters are not of one length by chance."""
_NOTE_OF_EXCEL = re.compile(rb"sep=(.{1,4}?)(?:\r\n|\n|\r)", re.IGNORECASE)

_HIVE = "\x01"
_NULL = NULL.decode()

_NUMBER = re.compile(r"[-+]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][-+]?\d+)?\s*%?")
_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_MOMENT = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(:\d{2})?.*"
)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].*)?")
_BOOLEAN = re.compile("true|false", re.IGNORECASE)
_SEVERAL_VALUES = re.compile(r"\S[;\t|\x01\x1f]\S")
_COMMAS = re.compile(r"\S,\S")


def detect_dialect(data: bytes, *, whole: bool) -> DetectedDialect:
    """Return how a CSV file is written. `data` is its beginning in UTF-8, or with `whole` all."""
    skipped, noted = _note_of_excel(data)
    readings = [
        reading
        for comment in _comments(data)
        if (reading := _best(data[skipped:], whole=whole, comment=comment, noted=noted))
    ]
    # Of equals the first, which needs the fewest options.
    best = max(readings, key=_merit, default=None)
    if best is not None and data.startswith(b"#"):
        is_title = best.width == 1 or _is_title_of(best.records[0], best.width)
        best = readings[-1] if is_title else best
    if best is None:
        return DetectedDialect((Guess("header", False, "LOW", "the file has no records"),))
    best = _as_dump(best, data[skipped:], whole=whole)
    return _described(best, lines=int(bool(skipped)))


@dataclass(frozen=True)
class _Reading:
    """The records that a dialect makes of the data, and how good it is."""

    dialect: Dialect
    records: tuple[Record, ...]
    width: int
    """The number of values that most records have."""
    fitting: float
    """The share of the bytes that are in records of that width."""
    score: float

    @property
    def separator(self) -> str:
        return self.dialect.separator.decode()


def _note_of_excel(data: bytes) -> tuple[int, str]:
    """Return the size of a first line `sep=;`, and the separator that it names."""
    found = _NOTE_OF_EXCEL.match(data)
    return (found.end(), found[1].decode(errors="replace")) if found else (0, "")


def _comments(data: bytes) -> tuple[bytes, ...]:
    """Return the signs that lines which are no records may begin with; b"" is none."""
    lines = data[: 1 << 16].splitlines()
    if not any(line.startswith(b"#") for line in lines):
        return (b"",)
    # The names of the columns may begin with one, after lines that begin with two, as in VCF.
    return (b"", b"##", b"#") if lines[0].startswith(b"##") else (b"", b"#")


def _best(data: bytes, *, whole: bool, comment: bytes, noted: str) -> _Reading | None:
    """Return the reading that makes the best table."""
    # A comma separates nothing where there is none: one value in each record.
    there = [sign for sign in _SEPARATORS if sign == "," or sign.encode() in data]
    signs = [noted] if noted else there
    readings = [
        reading
        for sign in signs
        if (reading := _quoted(data, sign, whole=whole, comment=comment)) is not None
    ]
    best = max(readings, key=lambda reading: reading.score, default=None)
    if best is not None and best.width == 1 and not noted:
        # Whatever the sign was, it separates nothing.
        one = _quoted(data, ",", whole=whole, comment=comment)
        best = one if one is not None and one.width == 1 else best
    return best


def _quoted(data: bytes, sign: str, *, whole: bool, comment: bytes) -> _Reading | None:
    """Return the best reading with a separator, over the ways of quoting."""
    separator = sign.encode()
    dialects = [Dialect(separator, comment=comment)]
    edges = re.compile(
        rb"(?:^|[\r\n]|"
        + re.escape(separator)
        + rb")'[^'\r\n]*'(?=[\r\n]|$|"
        + re.escape(separator)
        + rb")"
    )
    if b'"' in data:
        if b'\\"' in data:
            dialects.append(Dialect(separator, escape=b"\\", comment=comment))
        dialects.append(Dialect(separator, quote=b"", comment=comment))
    elif len(edges.findall(data[: 1 << 16])) > 1:
        dialects.insert(0, Dialect(separator, quote=b"'", comment=comment))
    if re.search(re.escape(separator) + rb" +\"", data) and sign != " ":
        dialects.append(Dialect(separator, trim_left=True, comment=comment))
    if re.search(rb"\\(?:" + re.escape(separator) + rb"|[\r\n])", data) and not comment:
        dialects += [_dump(data, separator, quote) for quote in (b"", b'"') if quote in data]
    readings = [
        reading
        for dialect in dialects
        if (reading := _read(data, dialect, whole=whole)) is not None
    ]
    return max(readings, key=_merit, default=None)


def _dump(data: bytes, separator: bytes, quote: bytes) -> Dialect:
    """Return the dialect of a dump with backslash escapes."""
    mostly = 2 * data.count(b"\r\n") > data.count(b"\n")
    line_break = b"\r\n" if mostly else b"\n"
    nulls = frozenset({NULL})
    return Dialect(separator, quote, backslashes=True, line_break=line_break, nulls=nulls)


def _as_dump(best: _Reading, data: bytes, *, whole: bool) -> _Reading:
    """Return the reading with backslash escapes where the table needs them, or where nulls are
    written as in dumps and each other backslash is an escape as well."""
    dialect = best.dialect
    if dialect.backslashes or dialect.comment or b"\\" not in data:
        return best
    quotes = dialect.quote if dialect.quote in data else b""
    dump = _read(data, _dump(data, dialect.separator, quotes), whole=whole)
    if dump is None:
        return best
    if dump.width == best.width and _misfits(best) and 2 * _misfits(dump) <= _misfits(best):
        return dump
    has_nulls = any(NULL in record.values for record in best.records)
    if _misfits(dump) > _misfits(best) or not has_nulls:
        return best
    signs = b"".join((*LETTERS, b"N\\\r\n", dialect.separator[:1], quotes))
    if re.sub(rb"\\[" + re.escape(signs) + rb"]", b"", data).count(b"\\"):
        return best
    others = data.count(b"\\") > data.count(NULL)
    rows = [_texts(record) for record in dump.records]
    no_header = detect_header(rows[0], rows[1:])[:2] != (True, "HIGH")
    return dump if others or (dialect.separator == b"\t" and not quotes and no_header) else best


def _misfits(reading: _Reading) -> int:
    table = reading.records[_first(reading.records, reading.width) :]
    return sum(len(r.values) != reading.width or bool(r.problem) for r in table)


def _merit(reading: _Reading) -> float:
    """Return the score without small differences: of equals the first wins."""
    return round(reading.score, 3)


def _read(data: bytes, dialect: Dialect, *, whole: bool) -> _Reading | None:
    found = list(islice(records(data, dialect), _MOST_RECORDS + 1))
    cut = len(found) > _MOST_RECORDS
    unfinished = 0
    if not whole and not cut and len(found) > 1:
        unfinished = found[-1].end - found[-1].start
        found.pop()  # it goes on behind the data
    found = [record for record in found if record.values][:_MOST_RECORDS]
    if not found:
        return None
    full = [record for record in found if any(record.values)] or found
    width, _ = max(Counter(len(r.values) for r in full).items(), key=lambda item: (item[1], item))
    found = _without_rows_of_nulls(found, width)
    first = _first(found, width)
    table = found[first:]
    before = [record for record in found[:first] if any(record.values)]
    size = sum(record.end - record.start for record in table)
    size += sum(record.end - record.start for record in before) // _SKIPPED_COUNT
    if unfinished > len(data) // 2:
        size += unfinished
    good = sum(r.end - r.start for r in table if len(r.values) == width and not r.problem)
    if table and len(table) > 1 and abs(len(table[0].values) - width) == 1:
        # A header without the name of R's row names, or rows that end with a separator.
        good += table[0].end - table[0].start
    fitting = good / size if size else 0.0
    sign = dialect.separator.decode()
    weight = 1.0 if width >= _WEAK.get(sign, 0) else 0.1
    if sign == ":" and not _has_words(table):
        weight = 0.1  # times of day
    weight *= 0.8 if sign in _WEAK else 1.0
    weight *= 0.8 if before else 1.0
    score = fitting * fitting * _cleanliness(table, sign) * (1 - 1 / (width + 1)) * weight
    if not dialect.quote:
        score *= _without_outer_quotes(table, sign)
    return _Reading(dialect, tuple(found), width, fitting, score)


def _without_rows_of_nulls(found: Sequence[Record], width: int) -> list[Record]:
    """Return the records without those of separators alone that have another width, of which a load
    makes rows of nulls. Those at the beginning stay: nothing says yet which columns there are."""
    begin = _separators_alone(found)
    return [*found[:begin], *(r for r in found[begin:] if len(r.values) == width or any(r.values))]


def _separators_alone(found: Sequence[Record]) -> int:
    """Return how many records at the beginning are separators alone."""
    places = (at for at, record in enumerate(found) if len(record.values) < 2 or any(record.values))
    return next(places, 0)


def _first(found: Sequence[Record], width: int) -> int:
    """Return the place of the first record of the table: those before it are of other widths, or
    are separators alone."""
    empty = _separators_alone(found)
    place = empty + _first_with_values(found[empty:], width)
    if place > empty or any(len(record.values) != width for record in found[:empty]):
        return place
    if not empty:
        return 0
    # Without a header they are rows of nulls.
    head, *body = (_texts(record) for record in found[empty:] if len(record.values) == width)
    return empty if detect_header(head, body)[0] else 0


def _first_with_values(found: Sequence[Record], width: int) -> int:
    """Return the place of the first record of the table among records that begin with values."""
    widths = [len(record.values) for record in found]
    if width == 1 or widths[0] > width or _lacks_a_name(found, width):
        return 0
    if _begins_with_a_row(found, width):
        return 0
    for place in range(min(len(widths), _MOST_BEFORE)):
        if widths[place] == width and (
            widths[place + 1 : place + 2] in ([], [width]) or _is_of_table(found[place:], width)
        ):
            # More records with several values than are left are no lines before the table.
            several = sum(one > 1 for one in widths[:place])
            place = _behind_titles(found, place, width)
            return place if several <= len(widths) - place else 0
    return 0


def _behind_titles(found: Sequence[Record], place: int, width: int) -> int:
    """Return the place of the header below titles that spreadsheets fill up with separators, else
    the place that is given."""
    behind = place
    while behind < min(len(found), _MOST_BEFORE) and _is_title_of(found[behind], width, 2):
        behind += 1
    if behind in (place, len(found)):
        return place
    head, *body = (_texts(record) for record in found[behind:] if len(record.values) == width)
    # Separators alone part titles from a header that has no name for some columns.
    parted = not any(found[behind - 1].values) or (width > 2 and all(head[:-1]))
    is_header = parted and not any(map(_kind, head)) and detect_header(head, body)[0]
    return behind if is_header else place


def _is_title_of(record: Record, width: int, least: int = 3) -> bool:
    """Whether a record of several columns has a value in the first one at most."""
    return len(record.values) == width >= least and not any(record.values[1:])


def _begins_with_a_row(found: Sequence[Record], width: int) -> bool:
    """Whether the first record is a row of a table without a header, one value short."""
    head, body = _texts(found[0]), [_texts(r) for r in found[1:] if len(r.values) == width]
    if len(head) != width - 1 or detect_header(body[0], body[1:])[0]:
        return False
    return detect_header(head, body)[:2] == (False, "HIGH")


def _is_of_table(found: Sequence[Record], width: int) -> bool:
    """Whether a record that one of another width follows looks like a header or like the rows."""
    head, *body = (_texts(record) for record in found if len(record.values) == width)
    is_header, _, _ = detect_header(head, body)
    return not (is_header and any(map(_kind, head)))


def _lacks_a_name(found: Sequence[Record], width: int) -> bool:
    """Whether the first record is a header with one name less than the rows have values, and not
    a line before the table."""
    if [len(record.values) for record in found[:2]] != [width - 1, width]:
        return False
    head = _texts(found[0])
    body = [_texts(record) for record in found[1:] if len(record.values) == width]
    if len(body) > _MOST * (len(found) - 1) and all(not row[-1] for row in body):
        return True
    return _are_names(head) and not _is_title(head, body)


def _is_title(head: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether a record above the rows is a line before the table, by its look or by theirs."""
    if len(head) > 1:
        return _is_above_others(body)
    is_header = len(body) > 1 and detect_header(body[0], body[1:])[0]
    return bool(re.search(r"\s", head[0])) or (is_header and body[0][1] not in NULL_TEXTS)


def has_row_names(head: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether the first column holds R's names of rows, for which the header has no name: several
    that differ. Numbers above which one name stands may as well be parts of one with a comma."""
    names = [row[0] for row in body]
    if len(body) < _FEWEST or not all(names) or len(set(names)) < len(names):
        return False
    counts = names == [str(number) for number in range(1, len(names) + 1)]
    if len(head) == 1 and _kind(names[0]) == "number" and not counts:
        return False
    return _are_names(head) and not _is_title(head, body)


def _are_names(head: Sequence[str]) -> bool:
    """Whether the texts can be the names of columns: they differ, and none is a number."""
    held = [text for text in head if text]
    return len(set(held)) == len(head) and not any(map(_kind, held)) and held[0][0] != "#"


def _is_above_others(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of the rows is itself a header, above numbers or dates."""
    return len(rows) > 1 and detect_header(rows[0], rows[1:])[:2] == (True, "HIGH")


def _texts(record: Record) -> list[str]:
    return [(value or b"").decode(errors="replace") for value in record.values]


def _cleanliness(table: Sequence[Record], separator: str) -> float:
    """Return the share of values that are one value, and not several with another separator."""
    values, clean = 0, 0.0
    for record in table[:300]:
        for text in _texts(record):
            if not text or len(text) > 60:
                continue
            values += 1
            held = text.strip()
            if _NUMBER.fullmatch(held) or _MOMENT.fullmatch(held):
                clean += 1
            elif not _SEVERAL_VALUES.search(held):
                # Commas are frequent in text.
                clean += 0.5 if separator != "," and _COMMAS.search(held) else 1
    return clean / values if values else 1.0


def _has_words(table: Sequence[Record]) -> bool:
    """Whether most records have a value of letters behind the first one."""
    some = table[:300]
    with_words = sum(any(re.match("[A-Za-z]", text) for text in _texts(one)[1:]) for one in some)
    return with_words > 0.9 * len(some)


def _without_outer_quotes(table: Sequence[Record], separator: str) -> float:
    """Return how likely it is that quotes mean nothing, where values begin with them.

    One at the end may be inches. A few bad records are no reason where others are quoted well.
    """
    rows = [_texts(record) for record in table]
    sign = re.escape(separator)
    quoted = re.compile(rf'(?:^|{sign})"([^"]*(?:""[^"]*)*)"(?={sign}|$)')
    opening = re.compile(rf'(?:^|{sign})"')
    lines = [separator.join(row) for row in rows]
    well = sum(quoted.search(line) is not None for line in lines)
    badly = sum(len(opening.findall(line)) > len(quoted.findall(line)) for line in lines)
    inner = [value for line in lines for value in quoted.findall(line)]
    needed = any('""' in value or separator in value for value in inner)
    if well and badly <= _SLIPS and (needed or well >= _MORE * badly):
        return _MEANINGFUL
    texts = [text for row in rows[:300] for text in row]
    opened = sum(text.startswith('"') for text in texts)
    return 1 - 0.9 * (opened / len(texts)) ** 0.5 if texts else 1.0


def _described(best: _Reading, *, lines: int) -> DetectedDialect:
    """Return the options of a reading; `lines` are those before its data."""
    width, dialect = best.width, best.dialect
    first = _first(best.records, width)
    table = list(best.records[first:])
    guesses: list[Guess] = []
    warnings: list[str] = []
    names: tuple[str, ...] = ()
    shown = f"{width} values in {_share(table, width)} records"
    sure: Confidence
    if width > 1:
        sure = "HIGH" if best.fitting > 0.98 and len(table) > 2 else "MEDIUM"
        guesses.append(Guess("separator", escaped(best.separator), sure, shown))
    else:
        signs = [sign for sign in _SEPARATORS if sign not in _WEAK]
        texts = [text for record in table[:300] for text in _texts(record)]
        open_to_doubt = any(sign in text for sign in signs for text in texts)
        sure = "LOW" if open_to_doubt else "HIGH"
        guesses.append(Guess("separator", ",", sure, "one value in each record"))
    guesses += _dump_guesses(best) if dialect.backslashes else ()
    if dialect.quote != b'"' and not dialect.backslashes:
        reason = "quotes stand within values" if not dialect.quote else "values stand in `'`"
        guesses.append(Guess("quote", dialect.quote.decode(), "MEDIUM", reason))
    if dialect.escape:
        guesses.append(Guess("escape", "\\", "HIGH", 'quotes within values are written `\\"`'))
    if dialect.comment:
        sign = dialect.comment.decode()
        guesses.append(Guess("comment", sign, "MEDIUM", f"the file begins with lines of `{sign}`"))
    skip = lines + (table[0].line - 1 if first else 0)
    if skip:
        guesses.append(_skipped(best, first, skip))
    rows = [_texts(record) for record in table]
    head, body = rows[0], rows[1:]
    body = [row for row in body if len(row) == width]
    trailing = (
        width > 1
        and bool(body)
        and all(not row[-1] for row in body)
        and (len(head) == width - 1 or (len(head) == width and not head[-1]))
    )
    if trailing:
        guesses.append(Guess("trailing_separator", True, "HIGH", "each record ends with one"))
        width -= 1
        head, body = head[:width], [row[:width] for row in body]
    if dialect.trim_left or _begin_with_blanks(body):
        guesses.append(Guess("trim_left", True, "HIGH", "blanks follow the separators"))
        head, body = [text.strip() for text in head], [[t.strip() for t in row] for row in body]
    most = body and len(body) > _MOST * (len(rows) - 1)
    if len(head) == width - 1 and most and has_row_names(head, body):
        # As R's write.table: the file cannot be read with this header.
        reason = "the line above has no name for the first column, as R writes row names"
        guesses.append(Guess("header", False, "MEDIUM", reason))
        guesses = [guess for guess in guesses if guess.option != "skip_rows"]
        skip = lines + table[0].line
        guesses.append(Guess("skip_rows", skip, "HIGH", "the header does not fit the rows"))
        warnings.append(
            f"the header has {width - 1} names for {width} values, as R writes row names: it is "
            "skipped, and `columns.rename` gives the names"
        )
        names = ("row_name", *head)
    else:
        width = max(width, len(head))
        body = [[*row, *[""] * (width - len(row))] for row in body]
        is_header, confidence, reason = detect_header(head, body)
        if best.separator == _HIVE and confidence != "HIGH":
            is_header, reason = False, "Hive writes no header"
        elif dialect.backslashes and confidence != "HIGH":
            is_header, reason = False, "databases write no header into dumps"
        guess = Guess("header", is_header, confidence, reason)
        if is_header and _is_above_others(body):
            line = lines + next(r.line for r in table[1:] if len(r.values) == best.width)
            guess = replace(
                guess,
                confidence="LOW",
                reason=f"line {line} looks like a header, too",
                other=f"skip_rows: {line - 1}",
            )
        guesses.append(guess)
        if not is_header:
            body = [[*head, *[""] * (width - len(head))], *body]
    columns = [[row[place] for row in body if row[place]] for place in range(width)] if body else []
    marks, unclear = _marks(columns, best.separator)
    guesses += marks
    warnings += unclear
    if nulls := null_texts(columns):
        listed = ", ".join(f"`{text}`" for text in nulls)
        reason = f"{listed} appears between numbers or dates"
        if nulls == (_NULL,):
            reason = f"{listed} is how databases write null"
        guesses.append(Guess("null_values", nulls, "MEDIUM", reason))
    if aligned(rows):
        warnings.append("the columns seem to be aligned by blanks, which is not supported")
    return DetectedDialect(tuple(guesses), tuple(warnings), names)


def escaped(sign: str) -> str:
    """Return a separator as documents write it."""
    return sign.replace("\t", "\\t")


def _skipped(best: _Reading, first: int, lines: int) -> Guess:
    """Return the guess about the records before the first one of the table."""
    if not first:
        return Guess("skip_rows", lines, "HIGH", "`sep=` of Excel")
    widest = max(best.records[:first], key=lambda record: sum(map(bool, record.values)))
    if not any(widest.values):
        reason = "the lines before have nothing but separators"
        return Guess("skip_rows", lines, "MEDIUM", reason)
    shown = " ".join(best.separator.join(_texts(widest)).split())[:_SHOWN]
    reason = f"the lines before, such as `{shown}`, have other numbers of values"
    several = sum(map(bool, widest.values)) > 1
    return Guess("skip_rows", lines, "LOW" if several else "MEDIUM", reason)


def _share(table: Sequence[Record], width: int) -> str:
    fitting = sum(len(record.values) == width for record in table)
    return f"all {fitting:,}" if fitting == len(table) else f"{fitting:,} of {len(table):,}"


def aligned(rows: Sequence[Sequence[str]]) -> bool:
    """Whether lines look like columns of fixed widths."""
    some = [row[0] for row in rows[:50] if len(row) == 1]
    return len(some) > 2 and all(re.search(r"\S {2,}\S", text) for text in some)


def _begin_with_blanks(body: Sequence[Sequence[str]]) -> bool:
    texts = [text for row in body for text in row[1:] if text]
    return bool(texts) and sum(text.startswith(" ") for text in texts) > 0.9 * len(texts)


def _kind(text: str) -> str:
    """Return what a value looks like; '' for text."""
    held = text.strip()
    if _PLAIN_NUMBER.fullmatch(held) or _NUMBER.fullmatch(held):
        return "number"
    if _MOMENT.fullmatch(held):
        return "moment"
    return "boolean" if _BOOLEAN.fullmatch(held) else ""


def detect_header(
    head: Sequence[str], body: Sequence[Sequence[str]]
) -> tuple[bool, Confidence, str]:
    """Return whether the first record names the columns, how certain that is, and why."""
    kinds = [_kind(text) if text and text not in NULL_TEXTS else None for text in head]
    if not body:
        named = not any(kinds)
        return named, "LOW", "there is one record" + (", of text" if named else "")
    for_header = against = repeated = alike = 0
    for place, kind in enumerate(kinds):
        values = [row[place] for row in body[:300] if row[place] and row[place] not in NULL_TEXTS]
        if not values or kind is None:
            continue
        below = Counter(map(_kind, values)).most_common(1)[0]
        typed = below[0] and below[1] >= 0.9 * len(values)
        for_header += bool(typed and kind != below[0])
        against += bool(typed and kind == below[0])
        repeated += not typed and head[place] in values
        alike += not typed and _are_alike(head[place], values)
    if alike and not for_header:
        return False, "MEDIUM", "the first record is written like the others"
    if for_header and not against:
        return True, "HIGH", "names stand above numbers or dates"
    if against and (_counts(head) or _are_years(head, body)):
        return True, "MEDIUM", "the numbers in the first record count on"
    if against > for_header and any(_is_year_above_others(head, body)):
        return False, "LOW", "the first record is like the others, or a year names a column"
    if against > for_header:
        return False, "HIGH", "the first record is like the others"
    if for_header:
        return True, "MEDIUM", "names stand above numbers or dates"
    if repeated:
        return False, "MEDIUM", "values of the first record are repeated"
    names = [text for text in head if text]
    if len(set(names)) == len(names) >= len(head) - 1 and all(len(text) <= 64 for text in names):
        confidence: Confidence = "MEDIUM" if len(head) > 1 else "LOW"
        return True, confidence, "the first record has a text for each column, none is repeated"
    return False, "LOW", "the first record does not look like names"


def _are_alike(name: str, values: Sequence[str]) -> bool:
    """Whether all values have one form that text rarely has, and the name has it too."""
    if len(values) < 3:
        return False
    lengths = {len(text) for text in (*values, name)}
    prefix = os.path.commonprefix([*values, name])  # noqa: RUF071
    if (len(lengths) == 1 and len(name) >= _LONG) or re.search(r"[A-Za-z0-9]{1,9}[:=/]", prefix):
        return True  # such as hashes, and what begins with `h1:`
    if all(map(_CODE.fullmatch, (*values, name))) and len(lengths) == 1 and re.search(r"\d", name):
        return True  # such as `ND2` above `CRV`
    form, times = Counter(_form(text) for text in values).most_common(1)[0]
    if times < 0.95 * len(values) or form != _form(name) or len(name) not in lengths:
        return False
    return bool(re.search(r"[^A-Za-z _]", form)) or len({len(text) for text in values}) == 1


def _form(text: str) -> str:
    """Return how a text is written: `A` for capitals, `a` for other letters, `9` for digits."""
    form = "".join(
        "9" if char.isdigit() else "A" if char.isupper() else "a" if char.isalpha() else char
        for char in text
    )
    return re.sub(r"(.)\1+", r"\1", form)


def _counts(head: Sequence[str]) -> bool:
    """Whether the numbers of a record are years or places: 1990, 1991, … or 0, 1, 2, …."""
    numbers = [int(text) for text in head if re.fullmatch(r"\d{1,4}", text)]
    if len(numbers) < 3 or len(numbers) < len(head) - 4:
        return False
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return len(steps) == 1 and steps != {0} and (numbers[0] in (0, 1) or 1000 <= numbers[0] <= 2100)


def _are_years(head: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether years count on in the first record, and other values stand below most of them."""
    years = [int(text) for text in head if re.fullmatch(_YEAR, text)]
    if len(years) < sum(_kind(text) == "number" for text in head):
        return False
    above = _is_year_above_others(head, body)
    steps = {later - earlier for earlier, later in pairwise(years)}
    return len(steps) == 1 and steps <= {1, -1} and sum(above) > len(years) / 2


def _is_year_above_others(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[bool]:
    """Return for each column whether its first value is a year, and most below are none."""
    return [
        bool(re.fullmatch(_YEAR, text))
        and sum(not re.fullmatch(_YEAR, row[place]) for row in body) > len(body) / 2
        for place, text in enumerate(head)
    ]


_CODE = re.compile(r"[A-Z0-9]{2,}")
_YEAR = r"(?:19|20)\d\d"
_EUROPEAN = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_AMERICAN = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def _marks(columns: Sequence[Sequence[str]], separator: str) -> tuple[list[Guess], list[str]]:
    """Return the marks in numbers where they are not the usual ones, and what may be either."""
    european = grouped = american = plain = unclear = False
    shown = ""
    for values in columns:
        texts = [text.strip() for text in values if text.strip() not in NULL_TEXTS]
        with_comma = [text for text in texts if "," in text]
        if not with_comma:
            plain |= any(re.fullmatch(r"[-+]?\d*\.(\d{1,2}|\d{4,})", text) for text in texts)
            continue
        # `1,234` alone may be either: what decides is a comma that parts no thousands.
        is_european = all(map(_EUROPEAN.fullmatch, texts))
        is_american = all(map(_AMERICAN.fullmatch, texts))
        if is_european and not is_american:
            european = True
            grouped |= any("." in text for text in texts)
        elif is_american:
            sure = any(text.count(",") > 1 or "." in text for text in with_comma)
            sure |= separator == "," and any(len(text.lstrip("+-")) < 4 for text in texts)
            american |= sure
            unclear |= not sure
            shown = shown or with_comma[0]
    if european and not plain:
        found = [Guess("decimal_mark", ",", "HIGH", "numbers are written like `1,5`")]
        if grouped:
            found.append(Guess("thousands_mark", ".", "HIGH", "numbers are written like `1.234,5`"))
        return found, []
    if american and not european:
        return [Guess("thousands_mark", ",", "HIGH", "numbers are written like `1,234`")], []
    if unclear:
        return [], [
            f"`{shown}` may be a fraction or thousands, and is read as text: "
            "set `decimal_mark: ','` or `thousands_mark: ','`"
        ]
    return [], []


def _dump_guesses(best: _Reading) -> Iterator[Guess]:
    """Yield the options of a dump."""
    dialect = best.dialect
    reason = "the records have one width where a backslash escapes separators and line breaks"
    if any(None in record.values for record in best.records):
        reason = "some values are `\\N`, and a backslash escapes others, as in dumps of databases"
    yield Guess("backslash_escapes", True, "MEDIUM", reason)
    if dialect.quote:
        sign = dialect.quote.decode()
        yield Guess("quote", sign, "MEDIUM", "values stand in quotes", 'quote: ""')
    if dialect.line_break == b"\r\n":
        other = "line_break: '\\n'"
        yield Guess("line_break", "\\r\\n", "MEDIUM", "most records end with it", other)
    elif (best.records[0].values[-1] or b"").endswith(b"\r"):
        reason = "a carriage return ends the first record, but few of the others"
        yield Guess("line_break", "\\n", "LOW", reason, "line_break: '\\r\\n'")
    values = {value for record in best.records for value in record.values}
    if dialect.separator == b"|" and b"" in values and None not in values:
        reason = "some values are empty and none is `\\N`, as Redshift writes null"
        yield Guess("null_values", ("",), "LOW", reason)


def null_texts(columns: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the texts that stand for null: between numbers or dates, and no code elsewhere."""
    found: dict[str, None] = {}
    codes: set[str] = set()
    for values in columns:
        if _NULL in values:
            found[_NULL] = None
        others = [text for text in values if text not in NULL_TEXTS]
        nulls = dict.fromkeys(text for text in values if text in NULL_TEXTS)
        if not nulls or not others:
            continue
        if all(map(_is_typed, others)):
            found |= nulls
        else:
            # NA may be Namibia.
            codes |= {
                null
                for null in nulls
                if null.isalpha() and all(t.isupper() and len(t) == len(null) for t in others)
            }
    return tuple(text for text in found if text not in codes)


def _is_typed(text: str) -> bool:
    return bool(
        _PLAIN_NUMBER.fullmatch(text) or _ISO_DATE.fullmatch(text) or _EUROPEAN.fullmatch(text)
    )
