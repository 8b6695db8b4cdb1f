"""The "did you mean" of messages."""

from __future__ import annotations

import difflib
import fnmatch
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from unidecode import unidecode_expect_nonascii

from lakeload_jobs.contract.spec import TRACKING_COLUMNS


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `name` was most likely meant to be, ignoring case, or None."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return the hint "did you mean `X`?", or None when nothing comes near."""
    found = nearest(name, candidates)
    return None if found is None else f"did you mean `{found}`?"


def neighbour_meant(path: str, folder: str, names: Iterable[str]) -> str:
    """Return "did you mean `X`? " for a path or glob that matches nothing below `folder`, where
    `names` are; '' when none comes near, or the name is there and what is below it is missing."""
    missing = path[len(folder) :].strip("/").partition("/")[0]
    visible = [name.rstrip("/") for name in names if name[0] not in "_."]
    if any(fnmatch.fnmatchcase(name, missing) for name in visible):
        return ""
    hint = did_you_mean(missing, visible)
    return f"{hint} " if hint else ""


MAX_NAME_LENGTH = 255
"""Glue's limit for databases, tables and columns, any number at the end included."""

LOG_NAME = "_lakeload"
"""The folder under the prefix that holds lakeload's own objects; no target has this name."""

PROBE_NAME = "probe"
"""The folder in that one where the connection test may delete. A first-level target of this name
would have its log there, under a policy that allows to delete it."""

PARTITION_KEY = "lakeload_partition"
"""Glue's partition key; a data column of the same name would make the Glue table invalid."""

RESERVED_COLUMNS = frozenset({*TRACKING_COLUMNS, "_file", "_pos", "_partition", PARTITION_KEY})
"""Target columns no source column may have: tracking, Iceberg's metadata, Glue's partition key."""

REJECTED_SUFFIX = "_rejected"
"""Ends the name of the table that takes a table's rejected records."""

_UNDERSCORES = re.compile("_+")
_NOT_A_LETTER = re.compile("[^A-Za-z]+")


def normalize(name: str, *, lower: bool = False, max_length: int = MAX_NAME_LENGTH) -> str:
    """Return the target name for a source name; the result holds only `[A-Za-z0-9_]`.

    `lower` is for Glue, which folds case. A name of which nothing is left becomes `_`: an
    empty name would make an empty path segment. Normalising twice changes nothing.
    """
    composed = unicodedata.normalize("NFC", name)
    text = composed if composed.isascii() else _without_accents(composed)
    text = re.sub("[^A-Za-z0-9_]", "_", text)
    text = _UNDERSCORES.sub("_", text)
    if not text or text[0].isdigit():
        text = _UNDERSCORES.sub("_", "_" + text)
    return (text.lower() if lower else text)[:max_length]


@lru_cache(maxsize=1 << 16)
def spelling(name: str) -> str:
    """Return what is the same for all spellings of one name, and for no other name.

    Case, accents, separators and punctuation make no difference. A letter or sign that `normalize`
    cannot write does: `日本` and `中国` are both `_`, and two names.
    """
    lost = []
    latin = False
    for char in unicodedata.normalize("NFC", name):
        kind = unicodedata.category(char)
        separates = kind[0] in "ZC" or kind in _SEPARATORS or char in "./\\:,;'\""
        if normalize(char) != "_":
            latin = True
        elif not separates and not (kind[0] == "M" and latin):
            lost.append(char.casefold())
            latin = False
    return " ".join((normalize(name, lower=True), *lost))


_SEPARATORS = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf")


def unique_names(
    names: Sequence[str], *, lower: bool = False, taken: Collection[str] = ()
) -> list[str]:
    """Normalise names and number those that collide `_1`, `_2`, … in the order given.

    The first of equal names keeps it; a number never makes a name that another source name,
    earlier or later, or `taken` has. Names that differ in case alone collide, because Glue,
    Athena and Spark's default resolution fold case.
    """
    natural = [normalize(name, lower=lower) for name in names]
    used = {name.lower() for name in taken}
    result: list[str | None] = []
    for name in natural:
        free = name.lower() not in used
        result.append(name if free else None)
        used.add(name.lower())
    next_number: dict[str, int] = {}
    return [
        _numbered(own, used, next_number) if name is None else name
        for own, name in zip(natural, result, strict=True)
    ]


def schema_name(
    *,
    glue_prefix: str | None,
    destination_prefix: str | None,
    source_schema: str | None,
    namespace: str | None = None,
    lower: bool = False,
) -> str:
    """Return the schema: its non-blank parts joined with `_`, or '' when all are blank.

    `glue_prefix` is None unless Glue is the catalog. A `namespace` that is set, even to '',
    replaces `destination_prefix` and `source_schema`.
    """
    rest = (destination_prefix, source_schema) if namespace is None else (namespace,)
    parts = [part for part in (glue_prefix, *rest) if part and part.strip()]
    return normalize("_".join(parts), lower=lower) if parts else ""


def visible_name(name: str) -> str:
    """Return a normalised name that begins with a letter.

    Spark and Hive skip folders whose names begin with `_` where they read the folder above.
    """
    text = normalize(name).lstrip("_")
    return text if text[:1].isalpha() else f"t_{text}".rstrip("_")


def hidden_name(table: str) -> tuple[str, str] | None:
    """Return what is the matter with a target table whose name begins with `_`, and what renames
    it; None for any other."""
    if not table.startswith("_") or table.lower() == LOG_NAME:
        return None
    return (
        f"the target table `{table}` begins with `_`: Spark, Hive and others skip such folders "
        "where they read the folder above",
        f"set `name: {visible_name(table)}` of the table before its first load",
    )


def target_name_problem(schema: str, table: str) -> str | None:
    """Say why a normalised schema and table cannot be a target, or return None."""
    for kind, name in (("schema", schema), ("table", table)):
        if name.lower() == LOG_NAME:
            return f"the target {kind} `{name}` is where lakeload stores its own log"
    if (schema or table).lower() == PROBE_NAME:
        kind = "schema" if schema else "table without a schema"
        return (
            f"a target {kind} named `{schema or table}` would have its log where the "
            "connection test deletes objects"
        )
    return None


def _without_accents(composed: str) -> str:
    """Spell Latin letters in ASCII and drop the marks upon them; all else becomes `_`."""
    letters: list[str] = []
    for char in composed:
        if char.isascii():
            letters.append(char)
        elif not (unicodedata.combining(char) and letters and letters[-1].isalpha()):
            letters.append(_ascii_letters(char))
    return "".join(letters)


@lru_cache(maxsize=4096)
def _ascii_letters(char: str) -> str:
    """Return the ASCII letters of one Latin letter, `_` for every other character."""
    if not unicodedata.name(char, "").startswith("LATIN "):
        return "_"
    return _NOT_A_LETTER.sub("", unidecode_expect_nonascii(char)) or "_"


def _numbered(name: str, used: set[str], next_number: dict[str, int]) -> str:
    """Return the first free `name_N` and mark it as used."""
    key = name.lower()
    number = next_number.get(key, 1)
    while True:
        suffix = f"_{number}"
        # Underscores left at the cut would make a run with the suffix's own.
        candidate = name[: MAX_NAME_LENGTH - len(suffix)].rstrip("_") + suffix
        number += 1
        if candidate.lower() not in used:
            used.add(candidate.lower())
            next_number[key] = number
            return candidate
