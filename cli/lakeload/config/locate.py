"""From a place in the data to a place in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.config.document import Branch, Items, Leaf, Tree
from lakeload.config.yaml_syntax import Span

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
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


def locate(root: Tree, location: Sequence[str | int]) -> Place:
    """Walk down `location` as far as the tree goes.

    A part that is not a key of the mapping at hand names a member of a union: stay.
    """
    place = Place("", None, root)
    for part in location:
        tree = place.value
        if isinstance(tree, Branch) and part in tree.entries:
            entry = tree.entries[str(part)]
            place = Place(join(place.path, str(part)), entry.key, entry.value)
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            place = Place(f"{place.path}[{part}]", None, tree.items[part])
    return place


def join(path: str, key: str) -> str:
    """Return the dotted path of a key below `path`."""
    return f"{path}.{key}" if path else key
