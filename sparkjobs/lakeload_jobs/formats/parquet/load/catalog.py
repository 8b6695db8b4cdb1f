"""A load's side of its catalog: refused before a row is read, and told when it lags behind."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import FollowUpFailed, LakeloadError
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget
from lakeload_jobs.formats.parquet.log.roll_forward import ParquetCatalog


def check_catalog(
    catalog: ParquetCatalog, target: GlueTarget | None, columns: Sequence[Column]
) -> tuple[str, ...]:
    """Return warnings; raise `LakeloadError` when the catalog holds something else in this place.

    A catalog that cannot be asked stops no load: the data will be in, and the catalog follows
    when it answers again.
    """
    if target is None:
        return ()
    try:
        catalog.check(target, columns)
    except AwsError as error:
        return (f"the catalog could not be checked before the load: {error.message}",)
    return ()


def catalog_stale(error: LakeloadError) -> FollowUpFailed:
    """Return what a user is told when the data is in and the catalog does not show all of it."""
    own = f"{error.hint}; then" if error.hint else "then"
    return FollowUpFailed(
        f"the data is committed, but the catalog is not up to date: {error.message}",
        hint=(
            f"{own} run `lakeload recover`; the next sync of this table also updates the "
            "catalog (do not load the data again)"
        ),
        retryable=error.retryable,
    )


def lagging(error: LakeloadError | None, unasked: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the warning that the catalog still lags behind jobs of before, then `unasked`, those
    of `check_catalog`. A reason that both have is told once."""
    if error is None:
        return unasked
    behind = "the catalog is not up to date with earlier jobs"
    told = any(error.message in warning for warning in unasked)
    return (behind if told else f"{behind}: {error.message}", *unasked)
