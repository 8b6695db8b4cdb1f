"""A Bloom filter of keys, as SQL. With it a MERGE drops most rows of the table that it does not
change before it sorts them and joins them with the load's."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeload_jobs.rows.casts import quoted

MOST_BITS = 1 << 22
BITS_OF_KEY = 16
"""At least so many, of which each key sets one: 6 % of other keys pass."""
MOST_KEYS = MOST_BITS // 4
"""With so many keys 22 % of others pass."""
FEW_PARTITIONS = 8
"""Partitions of a load that gets such a filter: each sends up to 512 KiB to the driver."""
_BITMAP_BITS = 1 << 15
"""The bits of each bitmap that Spark's `bitmap_construct_agg` returns."""


def filter_of(rows: DataFrame, key: Sequence[str], count: int) -> KeyFilter:
    """Return the filter of the keys of some rows; `count` is how many there are."""
    # Spark numbers bits from 1.
    place = F.xxhash64(*map(quoted, key)).bitwiseAND(F.lit(MOST_BITS - 1)) + 1
    bitmap = F.bitmap_construct_agg(F.bitmap_bit_position(place)).alias("bitmap")
    grouped = rows.groupBy(F.bitmap_bucket_number(place).alias("group")).agg(bitmap)
    return KeyFilter.of(((row["group"], row["bitmap"]) for row in grouped.collect()), count)


@dataclass(frozen=True)
class KeyFilter:
    """A Bloom filter with one hash function: the last bits of Spark's `xxhash64` say which bit a
    key sets. The number of bits is a power of 2."""

    bits: bytes

    @classmethod
    def of(cls, found: Iterable[tuple[int, bytes]], rows: int) -> KeyFilter:
        """Return the filter of the bitmaps of `rows` keys, with their groups."""
        whole = bytearray(MOST_BITS // 8)
        size = _BITMAP_BITS // 8
        for group, bitmap in found:
            at = (group - 1) * size
            both = int.from_bytes(whole[at : at + size]) | int.from_bytes(bitmap)
            whole[at : at + size] = both.to_bytes(size)
        while len(whole) > size and len(whole) * 4 >= rows * BITS_OF_KEY:
            # One bit of the hash less.
            half = len(whole) // 2
            both = int.from_bytes(whole[:half]) | int.from_bytes(whole[half:])
            whole = bytearray(both.to_bytes(half))
        return cls(bytes(whole))

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
