"""Answers of Spark's readers, recorded with its version: Spark is their oracle, and pinned.

Tests compare lakeload's readers with the recording. `make faults` asks Spark itself, and compares
its answers with the recording too. After a change of a question, or of the pin of pyspark:
`LAKELOAD_TEST_RECORD=1 .venv/bin/python -m pytest tests/integration/sources/files/spark`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from tests.environments import EXHAUSTIVE

RECORDINGS = Path(__file__).parents[4] / "corpus" / "expected" / "spark"
_RECORDS = "LAKELOAD_TEST_RECORD" in os.environ
_AGAIN = "LAKELOAD_TEST_RECORD=1 .venv/bin/python -m pytest tests/integration/sources/files/spark"


@dataclass(frozen=True)
class SparkOracle:
    """Spark's answers. `session` starts Spark: it is called where the answers are not recorded."""

    session: Callable[[], SparkSession]
    set_zone: Callable[[str], None]
    """Sets the zone of time of Spark's Java, which is UTC before."""

    def answer(
        self,
        name: str,
        question: Any,
        ask: Callable[[SparkSession], Any],
        *,
        kept: bool = True,
        alike: bool = True,
    ) -> Any:
        """Return Spark's answer, a value of JSON, as it is recorded in `name` for this question.

        `kept`: whether it is recorded; `alike`: whether Spark gives the same answer each time.
        Fails where it is recorded for another question or version, or Spark answers otherwise.
        """
        recording = RECORDINGS / f"{name}.json.gz"
        head = {"pyspark": pyspark.__version__, "question": digest(question)}
        live = plain(ask(self.session())) if EXHAUSTIVE or _RECORDS or not kept else None
        if not kept:
            return live
        if _RECORDS:
            recording.parent.mkdir(exist_ok=True)
            text = json.dumps({**head, "answer": live}, separators=(",", ":"))
            recording.write_bytes(gzip.compress(text.encode(), mtime=0))
        recorded = json.loads(gzip.decompress(recording.read_bytes()))
        known = {key: recorded[key] for key in head}
        assert known == head, f"{recording.name} is the answer to another question: {_AGAIN}"
        if live is not None:
            assert not alike or live == recorded["answer"], f"Spark answers otherwise: {_AGAIN}"
            return live
        return recorded["answer"]


def plain(value: Any) -> Any:
    """Return a value as it is after it was JSON: tuples are lists."""
    return json.loads(json.dumps(value))


def digest(question: Any) -> str:
    """Return the SHA-256 of what is asked: values of JSON, and contents of files."""
    return hashlib.sha256(json.dumps(question, default=_of_bytes).encode()).hexdigest()


def _of_bytes(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()
