"""Which collector and compiler the driver's JVM gets (docs/decisions/0031). Pure."""

from __future__ import annotations

import re

SMALL_INPUT = 64 << 20
"""Bytes of input below which a JVM ends before its second compiler has earned its keep."""
FEW_CORES = 2

_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_COMPILER = re.compile(r"-XX:(TieredStopAtLevel=|[+-]TieredCompilation\b)|-Xint\b")


def collector(cores: int | None, users: str) -> str:
    """Return the option for the garbage collector, '' where the user's options name one.

    `cores` are those of a local master, None on a cluster.
    """
    if _COLLECTOR.search(users):
        return ""  # Java refuses to start with two
    return "-XX:+UseSerialGC" if cores is not None and cores <= FEW_CORES else "-XX:+UseParallelGC"


def compiler(input_bytes: int | None, users: str) -> str:
    """Return the option for the compiler, '' for Java's own choice.

    `input_bytes` is what the job reads, None where that is not known.
    """
    if input_bytes is None or input_bytes > SMALL_INPUT or _COMPILER.search(users):
        return ""
    return "-XX:TieredStopAtLevel=1"


def local_cores(master: str, machine: int) -> int | None:
    """Return how many tasks a `local…` master runs at once in the driver's JVM, else None."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    if found[1] == "*":
        return machine
    return int(found[1] or 1)
