"""The log of a table leaves the bucket: after a reset, and only on a person's word.

This frees numbers. A process that opened the table before may still commit under one of them, and
its record then lies behind a gap that stops every later load (P12). One that uploads is noticed;
one that has not begun to is not: so a person has to know that nobody loads.
"""

from __future__ import annotations

from functools import partial

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, run_all
from lakeload_jobs.formats.parquet.log.records import FenceRecord
from lakeload_jobs.formats.parquet.log.reset_plan import WHOLE_LOG, others
from lakeload_jobs.storage.objects import Objects
from lakeload_jobs.storage.responses import ObjectEntry


class LogInUse(LoadFailed):
    """The log cannot go: somebody needs it, or may be about to."""


def half_removed(objects: Objects, location: TableLocation, pipeline: str) -> bool:
    """Return whether an earlier removal stopped half-way: running it again finishes it."""
    parsed = (location.parse_log_key(entry.key) for entry in objects.list(location.log_path))
    numbers = sorted(found[0] for found in parsed if found is not None and found[1] == "record")
    if not numbers or numbers[0] == 1:
        return False
    last = CommitLog(objects, location).record(numbers[-1])
    return isinstance(last, FenceRecord) and last.resets == pipeline


def check_removable(objects: Objects, location: TableLocation, pipeline: str) -> None:
    """Raise `LogInUse` when another pipeline has rows in the table or somebody uploads to it."""
    log = CommitLog(objects, location)
    view = log.read(before=WHOLE_LOG)
    log.load_records(entry.number for entry in view.entries)
    if found := sorted(others(log, view, pipeline)):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed: pipeline `{found[0]}` has rows "
            "in this table, and the log is what makes them count once",
            hint="leave `--with-log` out: the reset itself keeps the rows of others",
        )
    # What S3 was still completing when a job became void may yet appear (P16).
    endings = ((entry, log.ending_of_size(entry.number, entry.end_size)) for entry in view.entries)
    if any(ending == "void" and not entry.clean for entry, ending in endings):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed yet: a job was declared void so "
            "recently that S3 may still complete an upload of it",
            hint="run it again in half an hour",
        )
    if upload := next(objects.list_uploads(location.data_path), None):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed: `{upload.key}` is being "
            f"uploaded since {upload.initiated:%Y-%m-%d %H:%M} UTC, so somebody may be loading",
            hint="wait for that load, or remove what a dead one left: "
            "`lakeload recover FILE --abort-older-than 0`",
        )


def remove_log(objects: Objects, location: TableLocation, pipeline: str, parallelism: int) -> int:
    """Delete the log of a table after the reset of its only pipeline; return how many objects.

    The checkpoint and record 1 go first, the reset's fence last: from the first deletion to the
    last, the gap at the beginning stops every load, and `half_removed` recognises it. Raises
    `LogInUse`, `AwsError`.
    """
    if not half_removed(objects, location, pipeline):
        check_removable(objects, location, pipeline)
    entries = list(objects.list(location.log_path))
    parse = location.parse_log_key
    numbers = _numbers(location, entries)
    if not numbers:
        return 0
    cache = [entry for entry in entries if entry.key == location.checkpoint_key]
    numbered = [(found[0], entry) for entry in entries if (found := parse(entry.key))]
    # The record before its markers: without its `.end` it would look unfinished.
    first = [entry for number, entry in numbered if number == numbers[0] != numbers[-1]][::-1]
    between = [entry for number, entry in numbered if numbers[0] < number < numbers[-1]]
    last = [entry for number, entry in numbered if number == numbers[-1]]
    delete = partial(_delete, objects)
    for group, at_once in ((cache, 1), (first, 1), (between, parallelism), (last, 1)):
        run_all(delete, group, at_once)
    return len(cache) + len(first) + len(between) + len(last)


def _delete(objects: Objects, entry: ObjectEntry) -> None:
    objects.delete(entry.key, entry.etag)


def _numbers(location: TableLocation, entries: list[ObjectEntry]) -> list[int]:
    parsed = (location.parse_log_key(entry.key) for entry in entries)
    return sorted({found[0] for found in parsed if found is not None})
