"""Reader options of formats of text: how one is read, and those that all of them have.

Fingerprints hash the options as they were written: nothing here changes what is stored. The command
line checks options with the same functions, so nothing here needs Arrow.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakeload_jobs.sources.files.text.patterns import BadPattern, compile_pattern

Infer = Literal["SAFE", "STRINGS", "FULL"]
"""SAFE: types that say all that the text says; FULL: types that have the values of the text, but
not its zeros and signs; STRINGS: text."""


@dataclass(frozen=True)
class OptionProblem:
    """One option that cannot be used, and what to do instead."""

    option: str
    message: str
    hint: str | None


class WrongValue(ValueError):
    """A value that an option does not take. The message says what is wrong, `hint` what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


Check = Callable[[str], Any]
"""Returns the value that a text says. Raises `WrongValue`."""


@dataclass(frozen=True)
class TextOptions:
    """How files of text are written, and how their values are read."""

    encoding: str | None = None
    """A codec of Python; None is UTF-8, or what a byte order mark says."""
    infer: Infer = "SAFE"
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    time_zone: str = "UTC"
    """The zone of timestamps that are written without one."""


def read_boolean(text: str) -> bool:
    """Return whether a text is `true`."""
    if text.lower() not in ("true", "false"):
        raise WrongValue("is neither `true` nor `false`")
    return text.lower() == "true"


def _encoding(text: str) -> str:
    try:
        codec = codecs.lookup(text)
    except (LookupError, ValueError):
        codec = None
    if codec is None or not codec._is_text_encoding:
        raise WrongValue("is not an encoding", "write one such as `windows-1252` or `utf-16`")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """Return what reads one of some words, in any case."""

    def chosen(text: str) -> str:
        if text.upper() not in choices:
            raise WrongValue(f"is not one of {', '.join(f'`{choice}`' for choice in choices)}")
        return text.upper()

    return chosen


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except BadPattern as error:
        raise WrongValue(f"cannot be used: {error}") from error
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise WrongValue("is not a time zone", "write one such as `Europe/Berlin`") from error
    return text


SHARED: Mapping[str, Check] = {
    "date_format": _pattern,
    "encoding": _encoding,
    "infer": one_of("SAFE", "STRINGS", "FULL"),
    "time_zone": _zone,
    "timestamp_format": _pattern,
    "timestamp_ntz_format": _pattern,
}
"""The options of all formats of text."""

SHARED_ALIASES = {
    "charset": "encoding",
    "dateFormat": "date_format",
    "timestampFormat": "timestamp_format",
    "timestampNTZFormat": "timestamp_ntz_format",
    "timeZone": "time_zone",
}
"""Names of Spark's readers for the same."""

OTHER_FORMATS = "set `date_format` and `timestamp_format` in its place"


def only(*accepted: str, hint: str | None = None) -> Callable[[str], None]:
    """Accept the values that say what is so anyway."""

    def check(text: str) -> None:
        if text.lower() not in accepted:
            raise WrongValue("has a meaning that only Spark's reader supports", hint)

    return check


def any_value(text: str) -> None:
    """Accept every value of an option that makes no difference here."""


@dataclass
class OptionReading:
    """Options on their way into values by name: those in `own`, and names of Spark's reader, which
    are `aliases`, or have no effect where `neutral` accepts their value. `others` yields what
    further ones say, by their name in lower case, and raises `WrongValue`."""

    own: Mapping[str, Check]
    aliases: Mapping[str, str]
    neutral: Mapping[str, Check]
    others: Callable[[str, str], Iterator[tuple[str, Any]]]
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    problems: list[OptionProblem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._aliases = {name.lower(): own for name, own in self.aliases.items()}
        self._neutral = {name.lower(): check for name, check in self.neutral.items()}

    def take(self, option: str, text: str) -> None:
        """Read one option, and note what is wrong with it."""
        try:
            for name, value in self._values(option.lower(), text):
                if name in self.written:
                    raise WrongValue(f"duplicates `{self.written[name]}`", "remove one of them")
                self.values[name] = value
                self.written[name] = option
        except WrongValue as wrong:
            message = f"the reader option `{option}: {text}` {wrong.message}"
            self.problems.append(OptionProblem(option, message, wrong.hint))

    def _values(self, option: str, text: str) -> Iterator[tuple[str, Any]]:
        name = self._aliases.get(option, option)
        if name in self.own:
            yield name, self.own[name](text)
        yield from self.others(option, text)
        if check := self._neutral.get(option):
            check(text)


def option_text(value: Any) -> Any:
    """Return the text of an option that is written as a boolean, a whole number or a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        # Of anything else, such as a variable that is not set, the validation says what is wrong.
        plain = all(type(one) in (str, int, float, bool) for one in value)
        return json.dumps(value, ensure_ascii=False) if plain else value
    return str(value) if isinstance(value, int) else value


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options whose values are texts, or may be written as such."""
    texts = {option: option_text(value) for option, value in options.items()}
    return {option: text for option, text in texts.items() if isinstance(text, str)}
