"""Names that settings and values have in other products, and where each is here."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from lakeload.config.document import Branch, Items, Tree
from lakeload.config.secret_names import shown
from lakeload.data import read_toml

PAGE = "docs/migrating.md"
_NAMED = 3
"""Settings of a pasted document that are named."""


@dataclass(frozen=True)
class TheirSetting:
    """One setting of a product: where it is here, or why nothing here stands for it."""

    here: str = ""
    """`destination.…` or `pipeline.…`; of a table the name of its setting."""
    differs: str = ""
    without: str = ""


@dataclass(frozen=True)
class TheirValue:
    """The value in lakeload for a value of another product."""

    here: str
    note: str = ""
    hint: str = ""
    incremental: bool = False
    """A sync mode that loads what is new."""
    appends_again: bool = False
    """A sync mode that adds all rows each time."""


@dataclass(frozen=True)
class Product:
    """The settings of a product, by their plain names with the keys above them."""

    name: str
    title: str
    wrappers: frozenset[str]
    """Keys that hold settings and take no part in their names."""
    tables_key: str
    settings: Mapping[str, TheirSetting]
    tables: Mapping[str, TheirSetting]
    defaults: Mapping[str, str]
    """Settings of the destination that are this product's defaults."""
    incremental: bool = False
    """Tables load what is new, unless a sync mode says otherwise."""


@functools.cache
def products() -> Mapping[str, Product]:
    """Return the products of other_products.toml by name."""
    return {
        name: Product(
            name,
            given["title"],
            frozenset(given["wrappers"]),
            given["tables_key"],
            {key: TheirSetting(**value) for key, value in given["settings"].items()},
            {key: TheirSetting(**value) for key, value in given.get("tables", {}).items()},
            given.get("defaults", {}),
            given.get("incremental", False),
        )
        for name, given in read_toml(__package__, "other_products.toml").items()
        if name != "values"
    }


def plain(name: str) -> str:
    """Return a name in lower case with `_` between its words: `S3 Bucket Name`, `s3BucketName`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def our_setting(name: str, document: Literal["destination", "pipeline"]) -> str | None:
    """Say where another product's setting is here, None for a name that none of them has.

    `document` is the kind of the file in which it was found.
    """
    setting = _by_last_name().get(plain(name))
    if setting is None:
        return None
    if setting.without:
        return setting.without
    home, _, path = setting.here.partition(".")
    where = f"`{path}`" if home == document else f"`{path}` of the {home}"
    if plain(name) == "delta_updates":
        return f"without delta updates it is {where}: `UPSERT`; with them `APPEND`, the default"
    return f"here it is {where} ({PAGE})"


@functools.cache
def _by_last_name() -> Mapping[str, TheirSetting]:
    """Return every setting by its name without the keys above; the first product wins."""
    found: dict[str, TheirSetting] = {}
    for product in products().values():
        for name, setting in product.settings.items():
            found.setdefault(name.rpartition(".")[2], setting)
        for name, setting in product.tables.items():
            last = name.rpartition(".")[2]
            if setting.without:
                found.setdefault(last, setting)
            # `name` and `table` mean too much to say what a misplaced one stands for.
            elif last not in ("name", "table", "source"):
                found.setdefault(last, TheirSetting(f"pipeline.tables[].{setting.here}"))
    return found


def our_value(model: str, field: str, value: str) -> TheirValue | None:
    """Return what to write for another product's value; None where it is no such value."""
    found = (
        read_toml(__package__, "other_products.toml")["values"]
        .get(f"{model}.{field}", {})
        .get(plain(value))
    )
    if found is None:
        return None
    return TheirValue(
        found["is"],
        found.get("note", ""),
        found.get("hint", ""),
        found.get("incremental", False),
        found.get("appends_again", False),
    )


def value_hint(model: str, field: str, value: str) -> str | None:
    """Say what to write for another product's value; None where it is no such value."""
    found = our_value(model, field, value)
    if found is None:
        return None
    return found.hint or f"write `{found.here}`" + (f": {found.note}" if found.note else "")


def pasted(tree: Tree) -> str | None:
    """Say how to convert another product's document; None for any other."""
    found = dict(islice(_settings(tree), _NAMED))
    if not found:
        return None
    named = ", ".join(f"`{shown(name)}` is `{setting}`" for name, setting in found.items())
    return f"`lakeload import FILE` converts it ({PAGE}): {named}"


def _settings(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield settings whose names only other products have."""
    if isinstance(tree, Items):
        for item in tree.items:
            yield from _settings(item)
    if isinstance(tree, Branch):
        for name, entry in tree.entries.items():
            setting = _by_last_name().get(plain(name))
            if setting and setting.here and setting.here.rpartition(".")[2] != name:
                yield name, setting.here
            yield from _settings(entry.value)
