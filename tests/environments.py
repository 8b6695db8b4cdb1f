"""What of the developer's own environment no test may see, and what it asks of the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

EXHAUSTIVE = "LAKELOAD_TEST_EXHAUSTIVE" in os.environ
"""Whether also the tests run that `make faults` runs and `make test` does not."""


def many(full: int) -> int:
    """Return how many random cases a test tries: all in `make faults`, else an eighth of them."""
    return full if EXHAUSTIVE else full // 8


_PREFIXES = ("AWS_", "LAKELOAD_", "SPARK_", "PYSPARK_", "XDG_")
_NAMES = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "JAVA_TOOL_OPTIONS"}
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


@cache  # each test asks for all variables
def is_foreign(name: str) -> bool:
    """Return whether a variable is among the AWS, Spark, proxy and terminal settings."""
    if name.startswith("LAKELOAD_TEST_"):
        return False
    return name.startswith(_PREFIXES) or name in _NAMES or name.lower() in _PROXIES


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without them."""
    return {name: value for name, value in environment.items() if not is_foreign(name)}
