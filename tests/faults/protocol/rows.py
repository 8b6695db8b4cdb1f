"""The rows of every job, known without asking the lake: writers stage them, the oracle expects
them. A job's rows depend on its id alone, or, if it has a state, on the range it loads."""

from __future__ import annotations

import hashlib
import zlib

import pyarrow as pa

Files = tuple[tuple[str, ...], ...]
"""The payloads of each file of a job, in the order of `{seq}`."""


def payload(text: str) -> str:
    """Return a row's content: the text and its hash, so that a changed row shows."""
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def columns(job_id: str) -> dict[str, pa.DataType]:
    """Return what a job finds in its source: some a column more, some a struct with one field or
    the other. Each has the payload as its value."""
    text = pa.string()
    city, street = (pa.struct([(name, text)]) for name in ("city", "street"))
    # The first four jobs of an episode are of four kinds: city, street, city, street and more.
    more = ({"place": street, "more": text}, {"place": street}, {"more": text}, {"place": city})
    return {"payload": text, **more[zlib.crc32(job_id.encode()) % len(more)]}


def append_rows(job_id: str) -> Files:
    """Return the rows of an append: none to three files of 2 to 20 rows."""
    mark = zlib.crc32(job_id.encode())
    count = (1, 2, 2, 3, 3, 1, 2, 0)[mark % 8]
    return tuple(
        tuple(payload(f"{job_id}:{seq}:{row}") for row in range(2 + (mark >> (seq + 3)) % 19))
        for seq in range(count)
    )


def ranged_rows(pipeline: str, before: int, after: int) -> Files:
    """Return the rows of an incremental job that moves the state from `before` to `after`."""
    numbers = range(before + 1, after + 1)
    count = min(len(numbers), 1 + after % 3)
    return tuple(
        tuple(payload(f"{pipeline}:{number}") for number in _share(numbers, seq, count))
        for seq in range(count)
    )


def _share(numbers: range, seq: int, count: int) -> range:
    size = -(-len(numbers) // count)
    return numbers[seq * size : (seq + 1) * size]
