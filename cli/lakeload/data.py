"""Tables of names and texts that lie beside the code as TOML."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any


@functools.cache
def read_toml(package: str, name: str) -> dict[str, Any]:
    """Return what a file of a package holds. Do not change it: everybody gets the same."""
    return tomllib.loads((resources.files(package) / name).read_text("utf-8"))
