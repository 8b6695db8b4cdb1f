"""A Bloom filter of keys, as SQL. With it a MERGE drops most rows of the table that it does not
change before it sorts them and joins them with the load's."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeload_jobs.rows.casts import quoted

MOST_BITS = 1 << 22
BITS_OF_KEY = 16
"""At least so many, of which each key sets one: 6 % of other keys pass."""
MOST_KEYS = MOST_BITS // 4
"""With so many keys 22 % of others pass."""
_LEAST_BITS = 1 << 15


def filter_of(rows: DataFrame, key: Sequence[str], count: int) -> KeyFilter:
    """Return the filter of the keys of some rows; `count` is how many there are, `MOST_KEYS` at
    most. They come to the driver as numbers of four bytes, which costs Spark less than to sort them
    and make bitmaps."""
    place = F.xxhash64(*map(quoted, key)).bitwiseAND(F.lit(MOST_BITS - 1)).cast("int")
    places = rows.select(place.alias("place")).toArrow()["place"]
    # A hash is never null.
    return KeyFilter.of(cast("list[int]", places.to_pylist()), count)


@dataclass(frozen=True)
class KeyFilter:
    """A Bloom filter with one hash function: the last bits of Spark's `xxhash64` say which bit a
    key sets. The number of bits is a power of 2."""

    bits: bytes

    @classmethod
    def of(cls, places: Iterable[int], rows: int) -> KeyFilter:
        """Return the filter of `rows` keys, whose last bits of the hash are `places`."""
        size = MOST_BITS
        while size > _LEAST_BITS and size >= 2 * rows * BITS_OF_KEY:
            # One bit of the hash less.
            size //= 2
        bits = bytearray(size // 8)
        for place in places:
            bits[(place & (size - 1)) >> 3] |= 1 << (place & 7)
        return cls(bytes(bits))

    def condition(self, key: Sequence[str], argument: str) -> str:
        """Return the condition that a key may be one of the filter's. `argument` is where the SQL
        has the text of `words`."""
        place = f"(xxhash64({', '.join(key)}) & {len(self.bits) * 8 - 1}L)"
        word = f"CAST(split({argument}, ',') AS ARRAY<BIGINT>)[CAST(shiftright({place}, 6) AS INT)]"
        return f"bit_get({word}, CAST({place} & 63L AS INT)) = 1"

    @property
    def words(self) -> str:
        """The bits as numbers of 64 bits: text is the only argument that Spark takes in one piece
        and has as an array before the first row."""
        words = array("q", self.bits)
        if sys.byteorder == "big":
            words.byteswap()
        return ",".join(map(str, words))
