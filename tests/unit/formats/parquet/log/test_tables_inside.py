"""Uploads in a table of another destination, whose prefix lies inside of a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.stale_uploads import StaleUploads
from lakeload_jobs.storage.objects import Objects, OpenUpload

NOW = datetime(2026, 11, 28, tzinfo=UTC)
OUTER = TableLocation("lake", "shop", "orders")


@dataclass
class Store:
    """A bucket with open uploads, a day old, and objects."""

    uploads: tuple[str, ...]
    keys: tuple[str, ...] = ()
    waits = SimpleNamespace(now=lambda: NOW)

    def list_uploads(self, prefix: str) -> list[OpenUpload]:
        """Return the uploads below a prefix."""
        at = NOW - timedelta(days=1)
        return [OpenUpload(key, key, at) for key in self.uploads if key.startswith(prefix)]

    def is_empty(self, prefix: str) -> bool:
        """Return whether no object lies below a prefix."""
        return not any(key.startswith(prefix) for key in self.keys)


def stale(store: Store) -> set[str]:
    view = SimpleNamespace(entries=())
    log = cast(CommitLog, SimpleNamespace(location=OUTER, read=lambda: view))
    found = StaleUploads(cast(Objects, store), log, parallelism=1).find(timedelta(0))
    return {upload.key.removeprefix("lake/shop/orders/") for upload in found}


@pytest.mark.parametrize(
    "inner",
    [TableLocation("lake/shop/orders", "", "items"), TableLocation("lake/shop", "orders", "items")],
)
def test_committed_uploads_of_a_table_inside_are_not_aborted(inner: TableLocation) -> None:
    own = "2026/11/27/10/a.gzip.parquet"
    uploads = (f"{OUTER.data_path}{own}", f"{inner.data_path}b.gzip.parquet")

    assert stale(Store(uploads, (inner.record_key(1),))) == {own}
    # Without a log it is a partition of this table, such as a job id.
    assert stale(Store(uploads)) == {own, "items/b.gzip.parquet"}
