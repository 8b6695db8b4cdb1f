"""Manifests: few large ones that follow the partitions, in place of one or more for each load.

https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_manifests
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.maintain.compact import MAIN
from lakeload_jobs.formats.iceberg.maintain.races import until_won
from lakeload_jobs.formats.iceberg.maintain.work import Work, not_possible, nothing

FEWEST = 5
"""Fewer manifests are not worth a snapshot of their own."""

_TARGET_SIZE = "commit.manifest.target-size-bytes"
_DEFAULT_TARGET_SIZE = 8 << 20


def rewrite_manifests(work: Work) -> StepResult:
    """Rewrite the manifests when at least half of them would go, or say how many."""
    if work.branch != MAIN:
        return not_possible("manifests", "Iceberg rewrites manifests of the branch `main` alone")
    work.table.refresh()
    snapshot = work.head()
    if snapshot is None:
        return nothing("manifests")
    spec, io = work.table.spec().specId(), work.table.io()
    kinds = [
        # The rewrite takes those of the present partition spec alone.
        [manifest.length() for manifest in manifests if manifest.partitionSpecId() == spec]
        for manifests in (snapshot.dataManifests(io), snapshot.deleteManifests(io))
    ]
    # A single one that is small enough stays as it is.
    kinds = [sizes for sizes in kinds if len(sizes) > 1]
    target = int(work.table.properties().get(_TARGET_SIZE) or _DEFAULT_TARGET_SIZE)
    before = sum(len(sizes) for sizes in kinds)
    after = sum(manifests_after(sizes, target) for sizes in kinds)
    if before < FEWEST or after * 2 > before:
        return nothing("manifests")
    size = sum(sum(sizes) for sizes in kinds)
    if not work.spec.apply:
        return StepResult("manifests", "WOULD_DO", files=before, files_after=after, bytes=size)
    result = until_won(work, lambda: work.actions.rewriteManifests(work.table).execute())
    rewritten = list(result.rewrittenManifests())
    return StepResult(
        "manifests",
        "DONE",
        files=len(rewritten),
        files_after=len(list(result.addedManifests())),
        bytes=sum(manifest.length() for manifest in rewritten),
    )


def manifests_after(sizes: Sequence[int], target: int) -> int:
    """Return how many manifests a rewrite leaves of those of one kind."""
    return -(-sum(sizes) // target)
