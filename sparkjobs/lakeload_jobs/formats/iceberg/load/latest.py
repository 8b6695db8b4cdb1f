"""The latest row of each key of a load, and what is counted of all of them on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from lakeload_jobs.contract.result import SameKey
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX

_ORDER = HELPER_PREFIX + "order"
_RANK = HELPER_PREFIX + "rank"
_MOST_SHOWN = 80


@dataclass(frozen=True)
class KeyCounts:
    """`rows` of a load, of which `same_key` are not the latest of their key, such as those of the
    key `example`. `deletes` are among the others."""

    rows: int
    same_key: int
    deletes: int
    example: tuple[str, ...] = ()

    @property
    def latest(self) -> int:
        """How many keys there are."""
        return self.rows - self.same_key


@dataclass(frozen=True)
class LatestRows:
    """The latest row of each key: by `cursor`, then by the place in the source.

    Unmatched rows of one key would all be inserted by a MERGE, so there may be only one.
    """

    frame: DataFrame
    key: tuple[str, ...]
    _ranked: DataFrame
    _observation: Observation

    @classmethod
    def of(
        cls, rows: DataFrame, key: Sequence[str], cursor: str | None, order: Column
    ) -> LatestRows:
        """Rank the rows by `order`, which is their place."""
        last = [F.col(_ORDER).desc()]
        if cursor is not None:
            last.insert(0, F.col(quoted(cursor)).desc_nulls_last())
        window = Window.partitionBy(*(F.col(quoted(name)) for name in key)).orderBy(*last)
        ranked = rows.withColumn(_ORDER, order)
        ranked = ranked.withColumn(_RANK, F.row_number().over(window))
        observation = Observation()
        latest = ranked.observe(observation, *_counts(key)).where(F.col(_RANK) == 1)
        return cls(latest.drop(_RANK, _ORDER), tuple(key), ranked, observation)

    def counts(self, expected: int) -> KeyCounts:
        """Return what was counted while the frame was written. Counted again where Spark has not
        done it, as where it writes nothing, or has done it twice: a task again, or a sample."""
        found = observed(self._observation)
        if found is None or found["rows"] != expected:
            (row,) = self._ranked.agg(*_counts(self.key)).collect()
            found = row.asDict()
        example = json.loads(found["example"]) if found["example"] else ()
        return KeyCounts(found["rows"], found["same_key"], found["deletes"], tuple(example))

    def same_key(self, counts: KeyCounts) -> SameKey | None:
        """Return the rows that later ones replaced."""
        if not counts.same_key:
            return None
        pairs = zip(self.key, counts.example, strict=True)
        return SameKey(counts.same_key, ", ".join(f"`{name}` = {value}" for name, value in pairs))


def _counts(key: Sequence[str]) -> list[Column]:
    shown = F.array(*(F.col(quoted(name)).cast("string").substr(1, _MOST_SHOWN) for name in key))
    rank = F.col(_RANK)
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(rank > 1).alias("same_key"),
        F.count_if((rank == 1) & F.col(DELETED_HELPER)).alias("deletes"),
        F.max(F.when(rank == 2, F.to_json(shown))).alias("example"),
    ]


def observed(observation: Observation) -> Mapping[str, Any] | None:
    """Return what Spark has counted; None where it has not, as where nothing is written."""
    try:
        # Unlike `get`, this does not wait for counts that never come.
        found = observation._jo.getOrEmpty()  # type: ignore[union-attr]
    except Py4JJavaError:
        return None
    if found.isEmpty():
        return None
    return {name: found.apply(name) for name in ("rows", "same_key", "deletes", "example")}
