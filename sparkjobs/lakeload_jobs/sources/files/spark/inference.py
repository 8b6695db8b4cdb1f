"""Types that Spark infers from the values at hand, kept in step with what was loaded before.

A column that holds `7` in one export and `7.5` in the next, or nothing at all, would change its
type from run to run, and no Parquet reader accepts a column of two types. So what earlier loads
wrote decides, as long as the values at hand can be read as it without loss.
"""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ATOMIC = re.compile(r"[a-z_]+|decimal\(\d+,\d+\)")


def reads_as(inferred: str, earlier: str) -> bool:
    """Return whether values inferred as one type are to be read as the type they had earlier.

    Both are Spark's names. Text may be anything: Spark infers it for a column without a value
    too, and a value that does not fit is a bad value.
    """
    if inferred == earlier or not _ATOMIC.fullmatch(earlier):
        return False
    if not _ATOMIC.fullmatch(inferred):
        return earlier == "string"
    if earlier == "string" or inferred == "string":
        return True
    if inferred == "date":
        return earlier in ("timestamp", "timestamp_ntz")
    return _number_fits(inferred, earlier)


def _number_fits(inferred: str, earlier: str) -> bool:
    digits = _INTEGER_DIGITS.get(inferred)
    if digits is None:
        return False
    if earlier in _INTEGER_DIGITS:
        return digits <= _INTEGER_DIGITS[earlier]
    if decimal := _DECIMAL.fullmatch(earlier):
        return digits <= int(decimal[1]) - int(decimal[2])
    # Integers of up to 15 digits are exact in a double.
    return earlier == "double" and digits <= 15
