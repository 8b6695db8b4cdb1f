"""Where a key lies in its file, and how its name is written in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.config.document import Ambiguous, Branch, Items, Leaf, Tree
from lakeload.config.secret_names import MASK, is_masked_key, shown
from lakeload.config.yaml_tree import Span

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class KeyLocation:
    """Where a setting stands. `key` is None for list items and the document itself."""

    path: str
    key: Span | None
    value: Tree

    @property
    def span(self) -> Span:
        """The value, or its key where the value is absent or spreads over lines."""
        value = self.value.span
        spread = not isinstance(self.value, Leaf) and value.line != value.end_line
        if self.key is not None and (value.empty or spread):
            return self.key
        return value

    @property
    def key_span(self) -> Span:
        """The key, or the value where there is none."""
        return self.key if self.key is not None else self.span


def locate(root: Tree, location: Sequence[str | int]) -> KeyLocation:
    """Walk down `location` as far as the tree goes.

    A part that is not a key of the mapping at hand names a member of a union: stay.
    """
    place = KeyLocation("", None, root)
    for part in location:
        tree = place.value
        if isinstance(tree, Branch) and part in tree.entries:
            entry = tree.entries[str(part)]
            place = KeyLocation(join(place.path, str(part)), entry.key, entry.value)
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            place = KeyLocation(f"{place.path}[{part}]", None, tree.items[part])
    return place


def join(path: str, key: str) -> str:
    """Return the dotted path of a key below `path`."""
    return f"{path}.{key}" if path else key


def written(place: KeyLocation) -> str:
    """Return a scalar as it is written; neither secrets nor what the environment filled in."""
    if not isinstance(place.value, Leaf):
        return "…"
    parts = place.path.split(".")
    parent = parts[-2] if len(parts) > 1 else None
    return MASK if is_masked_key(parts[-1], parent) else shown(place.value.text)


def as_written(text: str, place: KeyLocation) -> str:
    """Put `${NAME}` back where a message shows what the environment filled in."""
    value = place.value
    if not isinstance(value, Leaf) or not value.filled or not isinstance(value.value, str):
        return text
    return text.replace(f"`{shown(value.value)}`", f"`{shown(value.text)}`")


def what_it_is(place: KeyLocation, expected: str) -> str:
    """Name a value that is not `expected`: `a list`, ``the number `5` ``."""
    tree: Tree = place.value
    if isinstance(tree, Items):
        return "a list"
    if isinstance(tree, Branch):
        return "a mapping"
    value, text = tree.value, written(place)
    if isinstance(value, Ambiguous) and value.reading != expected:
        return f"`{text}`, which YAML can read as {value.reading}"
    if isinstance(value, bool):
        return f"the boolean `{text}`"
    if isinstance(value, int | float):
        return f"the number `{text}`"
    return f"`{text}`"


def type_hint(place: KeyLocation, expected: str) -> str | None:
    """Say how to write a value that is `expected`, given what is there."""
    value, text = place.value, written(place)
    if isinstance(value, Leaf) and value.value is None:
        empty = ', `""` for empty text,' if expected == "text" else ""
        return f"write a value{empty or ''} or remove the line"
    scalar = isinstance(value, Leaf)
    if expected == "text":
        return f'put it in quotes: `"{text}"`' if scalar else None
    if (
        expected == "true or false"
        and isinstance(value, Leaf)
        and isinstance(value.value, Ambiguous)
    ):
        return f"write `{'true' if text.lower() in ('yes', 'y', 'on') else 'false'}`"
    if expected == "a list":
        return f"write `[{text}]`" if scalar else "begin each item with `- `"
    if expected == "a mapping":
        return "write `key: value` lines below it"
    return None


def quoted(names: Sequence[str]) -> str:
    """Return `a`, `b`, `c`."""
    return ", ".join(f"`{name}`" for name in names)


def listed(names: Sequence[str]) -> str | None:
    """Return a hint that lists all names there are."""
    return f"there are {quoted(names)}" if len(names) > 1 else None


def how_to_add(key: str, about: str) -> str:
    """Return a hint to add `key`, with the first line of its description."""
    first = about.split("\n", 1)[0].rstrip(".")
    return f"add `{key}: …`" + (f": {first[0].lower()}{first[1:]}" if first else "")
