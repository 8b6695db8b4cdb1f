"""File name patterns of Parquet files."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from lakeload_jobs.core.names import nearest

FILE_SUFFIX = ".gzip.parquet"
"""Added to every file name; the codec is fixed."""

MAX_FILE_NAME = 255
"""Bytes of a file name with its suffix that file systems accept when an object is copied to one."""

VARIABLES = ("seq", "uuid", "timestamp", "supa_job_id", "date")

_VARIABLE = re.compile(r"\{([^{}]*)\}")
# The longest value of each variable; `seq` counts files of one job and table, so ten digits do.
_LONGEST = {"seq": 10, "uuid": 36, "timestamp": 16, "supa_job_id": 64, "date": 10}


def pattern_problems(pattern: str) -> list[str]:
    """Return every reason why `pattern` is not accepted; an empty list means it is."""
    literal = _VARIABLE.sub("", pattern)
    used = set(_VARIABLE.findall(pattern))
    problems = [
        _unknown_variable(name) for name in _VARIABLE.findall(pattern) if name not in _LONGEST
    ]
    if "{" in literal or "}" in literal:
        problems.append("a `{` or `}` that is not part of a variable")
    if strange := sorted(set(re.sub(r"[A-Za-z0-9._{}-]", "", literal))):
        shown = " ".join(
            f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}" for char in strange
        )
        problems.append(f"only letters, digits, `.`, `_` and `-` are allowed, not {shown}")
    if pattern.startswith(("_", ".")):
        problems.append("it begins with `_` or `.`: Spark, Athena and Hive ignore such files")
    if pattern.lower().endswith(".parquet"):
        problems.append(f"the suffix `{FILE_SUFFIX}` is added by lakeload")
    problems += _uniqueness_problems(pattern, used)
    length = len(literal) + sum(_LONGEST.get(name, 0) for name in _VARIABLE.findall(pattern))
    if length + len(FILE_SUFFIX) > MAX_FILE_NAME:
        problems.append(f"file names could have more than {MAX_FILE_NAME} characters")
    return problems


def render_file_name(pattern: str, *, seq: int, uuid: str, synced: datetime, job_id: str) -> str:
    """Fill a valid pattern; the suffix is not included.

    `{seq}` has five digits and widens beyond 99999. `{timestamp}` and `{date}` are the job's
    one instant in UTC; `uuid` is new for each file.
    """
    instant = synced.astimezone(UTC)
    values = {
        "seq": f"{seq:05d}",
        "uuid": uuid,
        "timestamp": instant.strftime("%Y%m%dT%H%M%SZ"),
        "supa_job_id": job_id,
        "date": instant.strftime("%Y-%m-%d"),
    }
    return _VARIABLE.sub(lambda match: values[match[1]], pattern)


def _unknown_variable(name: str) -> str:
    meant = nearest(name, VARIABLES)
    allowed = ", ".join(f"`{{{variable}}}`" for variable in VARIABLES)
    asked = f"; did you mean `{{{meant}}}`?" if meant else f"; there are {allowed}"
    return f"unknown variable `{{{name}}}`{asked}"


def _uniqueness_problems(pattern: str, used: set[str]) -> list[str]:
    """Two files never share a name: neither of two jobs nor of one."""
    problems = []
    if not used & {"supa_job_id", "uuid"}:
        problems.append(
            "it must contain `{supa_job_id}` or `{uuid}`, or later jobs would use the same names"
        )
    if not used & {"seq", "uuid"}:
        problems.append(
            "it must contain `{seq}` or `{uuid}`, or two files of a job would have the same name"
        )
    # Job `a` with seq 100000 and job `a1` with seq 00000 would both read `a100000`.
    together = re.search(r"\{supa_job_id\}\d*\{seq\}|\{seq\}\d*\{supa_job_id\}", pattern)
    if together and "uuid" not in used:
        problems.append(
            "`{supa_job_id}` and `{seq}` need something that is not a digit between them"
        )
    return problems
