"""Options of our own readers of text, with Spark's names for them as aliases.

Fingerprints hash the options as they were written: nothing here changes what is stored. The command
line checks options with the same functions, so nothing here needs Arrow.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakeload_jobs.sources.files.text.patterns import BadPattern, compile_pattern

Infer = Literal["SAFE", "STRINGS", "FULL"]
QuotedEmpty = Literal["NULL", "TEXT"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


@dataclass(frozen=True)
class OptionProblem:
    """One option that cannot be used, and what to do instead."""

    option: str
    message: str
    hint: str | None


@dataclass(frozen=True)
class CsvOptions:
    """How CSV files are written, and how their values are read (docs/csv-files.md)."""

    separator: str = ","
    quote: str = '"'
    """'' gives quotes no meaning."""
    escape: str = ""
    """A sign that may stand before a quote within quotes; quotes may be doubled as well."""
    backslash_escapes: bool = False
    """A backslash escapes the character after it, as in dumps of databases. Quotes then have no
    meaning unless `quote` is set, and an empty value is an empty text."""
    line_break: str = ""
    """How records end with `backslash_escapes`; '': with a line feed, and not after a carriage
    return in the first record."""
    header: bool = False
    skip_rows: int = 0
    """Lines before the header."""
    comment: str = ""
    encoding: str | None = None
    """A codec of Python; None is UTF-8, or what a byte order mark says."""
    trailing_separator: bool = False
    trim_left: bool = False
    trim_right: bool = False
    null_values: tuple[str, ...] = ()
    quoted_empty: QuotedEmpty = "NULL"
    infer: Infer = "SAFE"
    decimal_mark: str = "."
    thousands_mark: str = ""
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    time_zone: str = "UTC"
    """The zone of timestamps that are written without one."""
    nan_value: str = "NaN"
    positive_infinity: str = "Inf"
    negative_infinity: str = "-Inf"


@dataclass(frozen=True)
class JsonOptions:
    """How JSON files are written, and how their values are read (docs/json-files.md)."""

    encoding: str | None = None
    infer: Infer = "SAFE"
    records: tuple[str, ...] = ()
    """The keys under which the list of records is; none: the file is records."""
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    time_zone: str = "UTC"


class _Wrong(ValueError):
    """A value that an option does not take. The message says what is wrong, `hint` what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _Wrong("is neither `true` nor `false`")
    return text.lower() == "true"


def _sign(text: str) -> str:
    """Spark takes `\\t` and the like for one sign."""
    return re.sub(r"\\([tnrbf0])", lambda m: _ESCAPES[m[1]], text)


def _separator(text: str) -> str:
    separator = _sign(text) if text == "\\" or not text.startswith("\\\\") else text[1:]
    if not separator or set(separator) & set("\r\n"):
        raise _Wrong("is not a separator", "write one or more characters, such as `;` or `\\t`")
    return separator


def _one_or_none(text: str) -> str:
    sign = _sign(text)
    if len(sign) > 1 or sign in ("\r", "\n"):
        raise _Wrong("is not one character")
    return "" if sign == "\0" else sign


def _line_break(text: str) -> str:
    sign = _sign(text)
    if sign not in ("\n", "\r\n"):
        raise _Wrong("is neither `\\n` nor `\\r\\n`")
    return sign


def _rows(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise _Wrong("is not a number of lines")
    return int(text)


def _comment(text: str) -> str:
    sign = _sign(text)
    if set(sign) & set("\r\n"):
        raise _Wrong("holds a line break")
    return "" if sign == "\0" else sign


def _encoding(text: str) -> str:
    try:
        codec = codecs.lookup(text)
    except (LookupError, ValueError):
        codec = None
    if codec is None or not codec._is_text_encoding:
        raise _Wrong("is not an encoding", "write one such as `windows-1252` or `utf-16`")
    return text


def _null_values(text: str) -> tuple[str, ...]:
    if not text.startswith("["):
        return (text,)
    try:
        values = json.loads(text)
    except ValueError as error:
        raise _Wrong("is not a list of texts", 'write `["NA", "-"]`') from error
    if not all(isinstance(value, str) for value in values):
        raise _Wrong("is not a list of texts", 'write `["NA", "-"]`')
    return tuple(values)


def _choice(*choices: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text.upper() not in choices:
            raise _Wrong(f"is not one of {', '.join(f'`{choice}`' for choice in choices)}")
        return text.upper()

    return chosen


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except BadPattern as error:
        raise _Wrong(f"cannot be used: {error}") from error
    return text


def _mark(text: str) -> str:
    if len(text) > 1 or text.isalnum() or text in ("-", "+"):
        raise _Wrong("is not one character between digits")
    return text


def _word(text: str) -> str:
    if not text.strip():
        raise _Wrong("is not a word")
    return text


_PATH = re.compile(r"""\$((?:\.[^.\[\]'"*\s]+|\['[^'\]]+'\])*)\[\*\]""")
_PATH_KEY = re.compile(r"""\.([^.\[\]'"*\s]+)|\['([^'\]]+)'\]""")


def _records(text: str) -> tuple[str, ...]:
    found = _PATH.fullmatch(text.strip())
    if found is None:
        raise _Wrong("is not a path to a list", "write `$.items[*]` or `$['all items'].page[*]`")
    return tuple(one or other for one, other in _PATH_KEY.findall(found[1]))


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _Wrong("is not a time zone", "write one such as `Europe/Berlin`") from error
    return text


_OWN: dict[str, Callable[[str], Any]] = {
    "backslash_escapes": _boolean,
    "comment": _comment,
    "date_format": _pattern,
    "decimal_mark": lambda text: _mark(text) or ".",
    "encoding": _encoding,
    "escape": _one_or_none,
    "header": _boolean,
    "infer": _choice("SAFE", "STRINGS", "FULL"),
    "line_break": _line_break,
    "nan_value": _word,
    "negative_infinity": _word,
    "null_values": _null_values,
    "positive_infinity": _word,
    "quote": _one_or_none,
    "quoted_empty": _choice("NULL", "TEXT"),
    "records": _records,
    "separator": _separator,
    "skip_rows": _rows,
    "thousands_mark": _mark,
    "time_zone": _zone,
    "timestamp_format": _pattern,
    "timestamp_ntz_format": _pattern,
    "trailing_separator": _boolean,
    "trim_left": _boolean,
    "trim_right": _boolean,
}
CSV_OPTIONS = tuple(name for name in _OWN if name != "records")
"""The options of CSV files that are documented."""

_SAME = {
    "charset": "encoding",
    "dateformat": "date_format",
    "delimiter": "separator",
    "ignoreleadingwhitespace": "trim_left",
    "ignoretrailingwhitespace": "trim_right",
    "nanvalue": "nan_value",
    "negativeinf": "negative_infinity",
    "positiveinf": "positive_infinity",
    "sep": "separator",
    "timestampformat": "timestamp_format",
    "timestampntzformat": "timestamp_ntz_format",
    "timezone": "time_zone",
}


def _only(*accepted: str, hint: str | None = None) -> Callable[[str], None]:
    """Accept the values that say what is so anyway."""

    def check(text: str) -> None:
        if text.lower() not in accepted:
            raise _Wrong("has a meaning that only Spark's reader supports", hint)

    return check


_OTHER_FORMATS = "set `date_format` and `timestamp_format` in its place"
_OTHER_MARKS = "set `decimal_mark` and `thousands_mark` in its place"
_LINE_FEED = "remove it, and end lines with `\\n`"
_DOUBLED = "remove it, and double the quotes within quotes"
_WITHOUT_EFFECT: dict[str, Callable[[str], None]] = {
    "enabledatetimeparsingfallback": _only("false", hint=_OTHER_FORMATS),
    "emptyvalue": _only("", hint="set `quoted_empty: TEXT` in its place"),
    "enforceschema": lambda text: None,
    "linesep": _only("\n", "\r", "\r\n", "\\n", "\\r", "\\r\\n", hint=_LINE_FEED),
    "locale": _only("en", "en-us", "en-gb", hint=_OTHER_MARKS),
    "maxcharspercolumn": lambda text: None,
    "maxcolumns": lambda text: None,
    "multiline": lambda text: None,
    "preferdate": lambda text: None,
    "samplingratio": lambda text: None,
    "unescapedquotehandling": _only("stop_at_delimiter", hint=_DOUBLED),
}  # fmt: skip
CSV_ALIASES = (
    *("charset", "dateFormat", "delimiter", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
    *("inferSchema", "nullValue", "sep", "timestampFormat", "timestampNTZFormat"),
    *("charToEscapeQuoteEscaping", "emptyValue", "enableDateTimeParsingFallback", "enforceSchema"),
    *("lineSep", "locale", "maxCharsPerColumn", "maxColumns", "multiLine", "nanValue"),
    *("negativeInf", "positiveInf", "preferDate", "samplingRatio", "timeZone"),
    "unescapedQuoteHandling",
)
"""Names of Spark's reader for the same, and for what makes no difference here."""


JSON_OPTIONS = (
    *("date_format", "encoding", "infer", "records", "time_zone", "timestamp_format"),
    "timestamp_ntz_format",
)
"""The options of JSON files that are documented; in NDJSON `records` says nothing."""


_NOT_JSON = (
    "files with it are not JSON: fix them and remove it, or write `type: SPARK` and "
    "`format: json` in `source`"
)
_LEFT_OUT = "remove it, and leave the column out with `columns.exclude`"
_DECIMAL = "remove it, and give the column a decimal type with `columns.types`"

_JSON_WITHOUT_EFFECT: dict[str, Callable[[str], None]] = {
    "allowbackslashescapinganycharacter": _only("false", hint=_NOT_JSON),
    "allowcomments": _only("false", hint=_NOT_JSON),
    "allownonnumericnumbers": _only("false", hint=_NOT_JSON),
    "allownumericleadingzeros": _only("false", hint=_NOT_JSON),
    "allowsinglequotes": _only("false", hint=_NOT_JSON),
    "allowunquotedcontrolchars": _only("false", hint=_NOT_JSON),
    "allowunquotedfieldnames": _only("false", hint=_NOT_JSON),
    "dropfieldifallnull": _only("false", hint=_LEFT_OUT),
    "enabledatetimeparsingfallback": _only("false", hint=_OTHER_FORMATS),
    "linesep": _only("\n", "\r\n", "\\n", "\\r\\n", hint=_LINE_FEED),
    "locale": _only("en", "en-us", "en-gb", hint="remove it, and write months in English"),
    "maxnestingdepth": lambda text: None,
    "maxnumlen": lambda text: None,
    "maxstringlen": lambda text: None,
    "prefersdecimal": _only("false", hint=_DECIMAL),
    "samplingratio": lambda text: None,
}
JSON_ALIASES = (
    *("charset", "dateFormat", "primitivesAsString", "timestampFormat", "timestampNTZFormat"),
    *("allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers"),
    *("allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars"),
    *("allowUnquotedFieldNames", "dropFieldIfAllNull", "enableDateTimeParsingFallback"),
    *("lineSep", "locale", "maxNestingDepth", "maxNumLen", "maxStringLen", "prefersDecimal"),
    *("samplingRatio", "timeZone"),
)
"""Names of Spark's reader for the same, and for what makes no difference here."""


@dataclass
class _Reading:
    """Options on their way into `CsvOptions` or `JsonOptions`."""

    translated: Callable[[str, str], Iterator[tuple[str, Any]]]
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    problems: list[OptionProblem] = field(default_factory=list)

    def take(self, option: str, text: str) -> None:
        """Read one option, and note what is wrong with it."""
        try:
            for name, value in self.translated(option.lower(), text):
                if name in self.written:
                    raise _Wrong(f"duplicates `{self.written[name]}`", "remove one of them")
                self.values[name] = value
                self.written[name] = option
        except _Wrong as wrong:
            message = f"the reader option `{option}: {text}` {wrong.message}"
            self.problems.append(OptionProblem(option, message, wrong.hint))


def _translated(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what an option says. Raises `_Wrong`."""
    own = _SAME.get(name, name)
    if own in _OWN:
        yield own, _OWN[own](text)
    elif name == "inferschema":
        yield "infer", "SAFE" if _boolean(text) else "STRINGS"
    elif name == "nullvalue":
        yield "null_values", (text,)
        if text:
            # With a text of its own for null, Spark takes an empty text for a text.
            yield "quoted_empty", "TEXT"
    elif name in _WITHOUT_EFFECT:
        _WITHOUT_EFFECT[name](text)


def _translated_json(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what an option says. Raises `_Wrong`."""
    own = _SAME.get(name, name)
    if own in JSON_OPTIONS:
        yield own, _OWN[own](text)
    elif name == "primitivesasstring":
        yield "infer", "STRINGS" if _boolean(text) else "SAFE"
    elif name in _JSON_WITHOUT_EFFECT:
        _JSON_WITHOUT_EFFECT[name](text)


def option_text(value: Any) -> Any:
    """Return the text of an option that is written as a boolean, a whole number or a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        # Of anything else, such as a variable that is not set, the validation says what is wrong.
        plain = all(type(one) in (str, int, float, bool) for one in value)
        return json.dumps(value, ensure_ascii=False) if plain else value
    return str(value) if isinstance(value, int) else value


def read_csv_options(options: Mapping[str, Any]) -> tuple[CsvOptions, list[OptionProblem]]:
    """Return the options of CSV files, and what is wrong with them. Names that are not options of
    CSV at all are left alone, and so are values that are no texts."""
    reading = _Reading(_translated)
    texts = _texts(options)
    for option, text in texts.items():
        reading.take(option, text)
    lower = {option.lower(): (option, text) for option, text in texts.items()}
    if reading.values.get("backslash_escapes"):
        reading.values.setdefault("quote", "")
    elif "null_values" in reading.values:
        # An empty value is null anyway.
        reading.values["null_values"] = tuple(filter(None, reading.values["null_values"]))
    read = CsvOptions(**reading.values)
    written = reading.written
    problems = [*reading.problems, *_conflicts(read, written), *_without_effect(read, written)]
    if "chartoescapequoteescaping" in lower:
        option, text = lower["chartoescapequoteescaping"]
        if text not in ("", "\0", read.escape or read.quote):
            message = f"the reader option `{option}: {text}` has a meaning that only Spark supports"
            hint = "remove it: a doubled character already stands for one"
            problems.append(OptionProblem(option, message, hint))
    if "linesep" in lower and read.backslash_escapes:
        option, text = lower["linesep"]
        message = f"the reader option `{option}: {text}` has no effect with `backslash_escapes`"
        problems.append(OptionProblem(option, message, "set `line_break` in its place"))
    if read.escape == read.quote:
        read = CsvOptions(**{**reading.values, "escape": ""})
    return read, problems


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    texts = {option: option_text(value) for option, value in options.items()}
    return {option: text for option, text in texts.items() if isinstance(text, str)}


def read_json_options(options: Mapping[str, Any]) -> tuple[JsonOptions, list[OptionProblem]]:
    """Return the options of JSON files, and what is wrong with them. Names that are not options of
    JSON at all are left alone, and so are values that are no texts."""
    reading = _Reading(_translated_json)
    for option, text in _texts(options).items():
        reading.take(option, text)
    return JsonOptions(**reading.values), reading.problems


def _conflicts(options: CsvOptions, written: Mapping[str, str]) -> Iterator[OptionProblem]:
    pairs = (("separator", "quote"), ("separator", "escape"), ("decimal_mark", "thousands_mark"))
    for one, other in pairs:
        sign = getattr(options, one)
        if sign and sign == getattr(options, other):
            option = written.get(other) or written.get(one) or other
            message = f"`{sign}` cannot be both the `{one}` and the `{other}`"
            yield OptionProblem(option, message, "choose another character for one of them")
    letters = "0NZbfnrtv"
    for one in ("separator", "quote"):
        sign = getattr(options, one)
        if options.backslash_escapes and sign and ("\\" in sign or sign[0] in letters):
            message = f"`{sign}` cannot be the `{one}`: behind a backslash it is another sign"
            yield OptionProblem(written.get(one, one), message, f"set another `{one}`")


_CLASHES = {
    "escape": "a backslash is the escape",
    "quoted_empty": "an empty value is an empty text, and null with `null_values: ['']`",
    "trim_left": "blanks belong to the values",
    "trim_right": "blanks belong to the values",
    "comment": "each line belongs to a record",
}
"""Options that cannot be set beside `backslash_escapes`, and why."""


def _without_effect(options: CsvOptions, written: Mapping[str, str]) -> Iterator[OptionProblem]:
    """Yield the options that do nothing beside the others."""
    if options.backslash_escapes:
        for name, why in _CLASHES.items():
            option = written.get(name, "")
            if option and option.lower() != "nullvalue" and getattr(options, name):
                said = f"the reader option `{option}` cannot be set with `backslash_escapes`"
                yield OptionProblem(option, f"{said}: {why}", "remove it")
        return
    if options.line_break:
        option = written["line_break"]
        message = f"the reader option `{option}` has an effect only with `backslash_escapes: true`"
        yield OptionProblem(option, message, "remove it: records may end with any line break")
    unquoted = "has no effect where quotes have no meaning"
    if options.escape and not options.quote:
        option, hint = written["escape"], "remove it"
        if options.escape == "\\":
            hint = (
                "set `backslash_escapes: true` in its place if separators are escaped, or remove it"
            )
        yield OptionProblem(option, f"the reader option `{option}` {unquoted}", hint)
    option = written.get("quoted_empty", "")
    if option.lower() == "quoted_empty" and options.quoted_empty == "TEXT" and not options.quote:
        yield OptionProblem(option, f"the reader option `{option}` {unquoted}", "remove it")
