"""A writer: one catalog object, and the steps of a load with files that need not exist."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

MAIN = "main"
NAMESPACE = "proof"
JOBS = "lakeload.jobs"
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
_A_DAY_MS = 86_400_000


class Seen(StrEnum):
    """What became of a commit."""

    LANDED = "landed"
    REFUSED = "refused"
    """Certainly not in: `CommitFailedException`, `CommitRejected`."""
    CONFLICT = "conflict"
    """Another exception of Iceberg's that is certain as well: nothing was sent."""
    EXISTS = "exists"
    MOVED = "moved"
    """Another commit is in, and ours is not unless it is that one: a read tells (our own client
    alone says so)."""
    UNKNOWN = "unknown"
    """An exception that says nothing about what the catalog did."""


_SEEN = {
    "CommitFailedException": Seen.REFUSED,
    "ValidationException": Seen.CONFLICT,
    "IllegalArgumentException": Seen.CONFLICT,
    "AlreadyExistsException": Seen.EXISTS,
}


def attempt(call: Callable[[], object]) -> tuple[Seen, str]:
    """Make a call and return what became of it and the class of its exception, '' for none."""
    try:
        call()
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getSimpleName())
        return _SEEN.get(name, Seen.UNKNOWN), name
    return Seen.LANDED, ""


@dataclass(frozen=True)
class Client:
    """One writer of the namespace `proof`. Names of data files stand for their rows."""

    gateway: JavaGateway
    catalog: Any

    def attempt(self, call: Callable[[], object]) -> tuple[Seen, str]:
        """Make a call and return what became of it and the class of its exception, '' for none."""
        return attempt(call)

    def identifier(self, table: str) -> Any:
        """Return the Java identifier of a table."""
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{NAMESPACE}.{table}")

    def load(self, table: str) -> Any:
        """Return the Java table, read anew."""
        return self.catalog.loadTable(self.identifier(table))

    def builder(self, table: str) -> Any:
        """Return a builder of a table with one column."""
        schema = self._jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps(_SCHEMA))
        builder = self.catalog.buildTable(self.identifier(table), schema)
        return builder.withProperty("lakeload.created-by", "proof")

    def create(self, table: str, *files: str) -> None:
        """Make a table; each file is appended by a commit of its own."""
        self.builder(table).create()
        for file in files:
            self.append(table, file)

    def append(self, table: str, file: str) -> int:
        """Append to main as a stranger does, and return the new snapshot."""
        java = self.load(table)
        java.newAppend().appendFile(self.file(java, file)).commit()
        return int(java.currentSnapshot().snapshotId())

    def stage(self, table: str, branch: str, *, mode: str = "append") -> int:
        """Make a branch on main, write the file `branch` to it, and return its snapshot. An append
        without rows is staged by the mode `nothing`."""
        java = self.load(table)
        java.manageSnapshots().createBranch(branch).commit()
        if mode == "overwrite":
            change = java.newOverwrite().overwriteByRowFilter(
                self._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
            )
            change = change.addFile(self.file(java, branch))
        else:
            change = java.newAppend()
            if mode == "append":
                change = change.appendFile(self.file(java, branch))
        change.toBranch(branch).commit()
        return int(java.snapshot(branch).snapshotId())

    def open(
        self, table: str, branch: str, *, mode: str = "append", asserts_branch: bool = True
    ) -> Any:
        """Return the publish transaction, built on what the table is now, and not committed."""
        transaction = self.load(table).newTransaction()
        base = transaction.table()
        jobs = [job for job in (base.properties().get(JOBS) or "").split(",") if job]
        staged = base.snapshot(branch).snapshotId()
        if asserts_branch:
            transaction.manageSnapshots().setMaxRefAgeMs(branch, _A_DAY_MS).commit()
        operations = transaction.manageSnapshots()
        if mode == "overwrite":
            operations.fastForwardBranch(MAIN, branch).commit()
        else:
            operations.cherrypick(staged).commit()
        transaction.manageSnapshots().removeBranch(branch).commit()
        transaction.updateProperties().set(JOBS, ",".join([*jobs, branch])).commit()
        return transaction

    def publish(self, table: str, branch: str, *, mode: str = "append") -> tuple[Seen, str]:
        """Build and commit the publish transaction."""

        def call() -> None:
            self.open(table, branch, mode=mode).commitTransaction()

        return attempt(call)

    def set_property(self, table: str, name: str, value: str) -> None:
        """Commit a change of one property alone."""
        self.load(table).updateProperties().set(name, value).commit()

    def drop_branch(self, table: str, branch: str) -> None:
        """Drop a branch as a clean-up does."""
        self.load(table).manageSnapshots().removeBranch(branch).commit()

    def rollback(self, table: str, snapshot: int) -> None:
        """Set main back by hand."""
        self.load(table).manageSnapshots().rollbackTo(snapshot).commit()

    def drop(self, table: str) -> None:
        """Drop a table and leave its files."""
        # Nessie's client drops a table only as it has seen it.
        self.load(table)
        assert self.catalog.dropTable(self.identifier(table), False)

    def files(self, table: str) -> list[str]:
        """Return the names of main's files, through its manifests."""
        planned = self.load(table).newScan().planFiles()
        found = [str(task.file().location()) for task in _each(planned)]
        planned.close()
        return sorted(name.rpartition("/")[2].removesuffix(".parquet") for name in found)

    def property_of(self, table: str, name: str) -> str | None:
        """Return a property of the table."""
        found = self.load(table).properties().get(name)
        return None if found is None else str(found)

    def jobs(self, table: str) -> list[str]:
        """Return the jobs in the table's property, oldest first."""
        text = self.property_of(table, JOBS) or ""
        return [job for job in text.split(",") if job]

    def refs(self, table: str) -> list[str]:
        """Return the names of the table's branches."""
        return sorted(str(name) for name in _each(self.load(table).refs().keySet()))

    def head(self, table: str) -> int:
        """Return main's snapshot."""
        return int(self.load(table).currentSnapshot().snapshotId())

    def history(self, table: str) -> list[int]:
        """Return the snapshots of main's lineage, newest first."""
        java = self.load(table)
        found, snapshot = [], java.currentSnapshot()
        while snapshot is not None:
            found.append(int(snapshot.snapshotId()))
            parent = snapshot.parentId()
            snapshot = java.snapshot(parent) if parent is not None else None
        return found

    def file(self, java: Any, name: str) -> Any:
        """Return a data file of one row that is in no snapshot yet."""
        builder = self._jvm.org.apache.iceberg.DataFiles.builder(java.spec())
        path = f"{java.location()}/data/{name}.parquet"
        return builder.withPath(path).withFileSizeInBytes(100).withRecordCount(1).build()

    @property
    def _jvm(self) -> Any:
        return self.gateway.jvm


def _each(iterable: Any) -> Any:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()
