"""Reading of tables by commands, without Spark and without pyiceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import NO_STATE, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    assert_ref,
    ref,
    remove_properties,
)
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, table_facts
from lakeload_jobs.formats.iceberg.rules.file_io import FILE_IO_SETTING, io_settings
from lakeload_jobs.formats.iceberg.rules.writers import WrittenTable, written_table

_FALSE_COMMITS: tuple[tuple[Json, ...], ...] = ((), (remove_properties(["lakeload.compared"]),))
"""Updates that change nothing. The second is for catalogs that do not read a commit without any; no
table has the property."""


def read_table(store: TableStore, namespace: str, name: str) -> ReadTable | None:
    """Return a table; None where there is none. Raises `CatalogError` for what the catalog refuses
    and for a table that lakeload does not know, `AwsError` for what Glue and S3 refuse."""
    with supported(f"reading the table `{namespace}.{name}`"):
        return store.load(namespace, name)


def facts_of(table: ReadTable) -> TableFacts:
    """Return what the metadata of a table says."""
    return table_facts(table.metadata, table.metadata_location)


def existing_table(
    destination: DestinationSpec, table: ReadTable, own_key: Callable[[], str]
) -> WrittenTable:
    """Return what decides about who writes a table. `own_key` returns the access key id of the
    destination's own identity."""
    config = table.config or {}
    settings = io_settings(config, table.credentials, destination, own_key)
    return written_table(table.metadata, settings, config.get(FILE_IO_SETTING))


@contextmanager
def supported(doing: str) -> Iterator[None]:
    """Translate what the block raises of a table that lakeload does not know. Raises
    `CatalogError`, whose message begins with `doing`."""
    try:
        yield
    except Unsupported as error:
        raise unsupported(doing, error) from None


def unsupported(doing: str, found: Unsupported) -> CatalogError:
    """Return the error about a table with something that this version does not know."""
    return CatalogError(
        f"{doing}: the table has {found}, which this version of lakeload does not support",
        code="Unsupported",
        hint=found.hint or "use a newer version of lakeload",
    )


def refuses_overtaken(store: TableStore, namespace: str, name: str, branch: str) -> bool:
    """Return whether a commit is refused that asserts a snapshot which `branch` is not at.

    A REST catalog is asked so: it alone compares what a commit asserts. A commit that is taken
    changes nothing of the table. Raises `CatalogError` for an answer that says nothing of it, such
    as a missing privilege or a table that is not there.
    """
    doing = f"checking whether the catalog validates commits to the table `{namespace}.{name}`"
    table = read_table(store, namespace, name)
    if table is None:
        raise CatalogError(
            f"{doing}: the table does not exist",
            code="NoSuchTableException",
            status=HTTPStatus.NOT_FOUND,
        )
    false = assert_ref(branch, (ref(table.metadata, branch) or 0) ^ 1)
    for updates in _FALSE_COMMITS:
        try:
            store.commit(table, [false], updates)
            continue
        except CommitRejected as error:
            refused = error.__cause__ if error.busy else None
            if not isinstance(refused, CatalogError):
                return True
        except CommitUnknown as error:
            cause = error.__cause__
            if isinstance(cause, CatalogError):
                raise cause from None
            raise CatalogError(f"{doing}: {error}", code=NO_STATE, unanswered=True) from error
        except CatalogError as error:
            refused = error
        if refused.status == HTTPStatus.CONFLICT:
            return True
        if updates or refused.status != HTTPStatus.BAD_REQUEST:
            raise refused
    return False
