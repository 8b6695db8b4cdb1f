"""Commits of a command, of which a read has to tell what became."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.iceberg.catalogs.changes import catalog_errors, commit
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import CommitUnknown, Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import set_properties
from tests.unit.formats.iceberg.commits.own_table import OwnTable
from tests.unit.formats.iceberg.load.own_store import Fate, OwnStore, lost, never


def changed(store: OwnStore) -> ReadTable:
    """Set a property."""
    table = store._read()
    return commit(
        store, table, [], [set_properties({"a": "b"})], lambda now: now.properties.get("a") == "b"
    )


def failing(error: Exception) -> Callable[[], object]:
    """Return a read that fails."""

    def fail() -> object:
        raise error

    return fail


def test_commit_whose_answer_is_lost_is_found_by_a_read(tmp_path: Path) -> None:
    store = OwnStore(OwnTable.new(tmp_path), whole=False, fates=[lost])
    assert changed(store).properties["a"] == "b"


@pytest.mark.parametrize("fate", [lost, never])
@pytest.mark.parametrize(
    "error",
    [
        CatalogError("reading", code="EndpointConnectionError"),
        CatalogError("reading", code="ForbiddenException", status=403),
        Unsupported("the format version 4"),
    ],
)
def test_commit_whose_answer_is_lost_stays_unknown_where_the_read_fails(
    error: Exception, fate: Fate, tmp_path: Path
) -> None:
    store = OwnStore(OwnTable.new(tmp_path), whole=False, fates=[fate], reads=[failing(error)])
    with pytest.raises(CommitUnknown):
        changed(store)


@pytest.mark.parametrize(
    "cause",
    [None, CatalogError("committing", code="ConnectionClosedError", unanswered=True)],
)
def test_commit_that_stays_unknown_is_no_refusal(cause: LakeloadError | None) -> None:
    with pytest.raises(CatalogError) as caught, catalog_errors("committing"):
        raise CommitUnknown("no answer") from cause
    assert caught.value.may_have_acted


def _error(**given: Any) -> CatalogError:
    return CatalogError("calling", code="Some", **given)


@pytest.mark.parametrize(
    ("error", "may_have_acted"),
    [
        (_error(), False),
        (_error(unanswered=True), True),
        *((_error(status=status), True) for status in (200, 204, 302, 408, 500, 502, 503, 504)),
        *((_error(status=status), False) for status in (400, 403, 404, 409, 412, 419, 429, 501)),
    ],
)
def test_status_decides_whether_the_catalog_may_have_acted(
    error: CatalogError, may_have_acted: bool
) -> None:
    assert error.may_have_acted is may_have_acted
