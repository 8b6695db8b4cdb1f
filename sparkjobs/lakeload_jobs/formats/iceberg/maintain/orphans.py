"""Files below a table's location that no snapshot names: what killed loads have left.

https://iceberg.apache.org/docs/latest/spark-procedures/#remove_orphan_files
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from py4j.protocol import Py4JJavaError

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.load.tables import Java, caused_by
from lakeload_jobs.formats.iceberg.maintain.work import (
    Work,
    check_deleting,
    keeps_files,
    not_possible,
    nothing,
    shown,
)
from lakeload_jobs.formats.iceberg.rules.branches import orphans_before

MEASURED = 1000
"""Orphans whose sizes are asked for: each takes a request."""
_AT_ONCE = 8


def remove_orphans(work: Work) -> StepResult:
    """Remove the files that belong to nobody, or name them.

    Older than `orphans_older_than`, and than every staging branch: the files of a load that runs
    for longer are in no snapshot yet (I10).
    """
    facts = work.facts()
    if why := keeps_files(facts.properties):
        return not_possible("orphans", why)
    age = timedelta(seconds=work.spec.orphans_older_than)
    before = orphans_before(facts.refs, work.now(), age)
    found = _find(work, int(before.timestamp() * 1000))
    if not found:
        return nothing("orphans")
    size = _bytes(work, found)
    if work.spec.apply:
        check_deleting(work)
        _delete(work, found)
    return StepResult(
        "orphans",
        "DONE" if work.spec.apply else "WOULD_DO",
        files=len(found),
        bytes=size,
        items=shown(found),
    )


def _find(work: Work, before_ms: int) -> list[str]:
    """Return what Iceberg's own action would delete: it hands each file to a list instead."""
    found = work.java.java.util.Collections.synchronizedList(work.java.java.util.ArrayList())
    action = work.actions.deleteOrphanFiles(work.table).usePrefixListing(True)
    action.olderThan(before_ms).deleteWith(_adder(work, found)).execute()
    return sorted(str(location) for location in found)


def _adder(work: Work, found: Java) -> Java:
    """Return a Java consumer that adds to a Java list: a Python function cannot be called there."""
    java = work.java.java
    invoke = java.lang.invoke
    loader = java.lang.Thread.currentThread().getContextClassLoader()
    kinds = {
        name: java.lang.Class.forName(f"java.{name}", True, loader)
        for name in ("lang.Object", "util.List", "util.function.Consumer")
    }
    signature = invoke.MethodType.methodType(java.lang.Boolean.TYPE, kinds["lang.Object"])
    add = invoke.MethodHandles.publicLookup().findVirtual(kinds["util.List"], "add", signature)
    bound = add.bindTo(found)
    return invoke.MethodHandleProxies.asInterfaceInstance(kinds["util.function.Consumer"], bound)


def _bytes(work: Work, found: Sequence[str]) -> int | None:
    if len(found) > MEASURED:
        return None
    io = work.table.io()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return sum(pool.map(lambda location: int(io.newInputFile(location).getLength()), found))


def _delete(work: Work, found: Sequence[str]) -> None:
    """Delete them. Raises `LoadFailed` when some could not be."""
    io = work.table.io()
    try:
        io.deleteFiles(list(found))
    except Py4JJavaError as error:
        if not caused_by(error, "BulkDeletionFailureException"):
            raise
        raise LoadFailed(
            f"some of {len(found)} orphans of `{work.target}` could not be deleted",
            hint="spark.log names them; run it again",
            retryable=True,
        ) from error
