"""What a table really holds, by pyiceberg alone, at each moment that a reader could see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.iceberg.rules.branches import STAGING_PREFIX
from tests.faults.findings import Findings
from tests.faults.iceberg.rows import Mode, Row, loaded, rejected_of
from tests.faults.iceberg.world import World
from tests.faults.product.syncs import IN, Told

JOB_ID = "lakeload.job-id"


class Oracle:
    """One catalog, opened for looking."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._catalog = world.open_directly()

    def table(self, name: str) -> Table | None:
        """Return a table as it is now; None when there is none."""
        try:
            return self._catalog.load_table((self._world.schema, name))
        except NoSuchTableError:
            return None

    def jobs(self, name: str) -> list[str]:
        """Return the jobs in main's lineage, oldest first."""
        table = self.table(name)
        head = table.metadata.snapshot_by_name("main") if table else None
        return _jobs(table, head) if table and head else []

    def check(self, name: str, told: Iterable[Told], *, settled: bool = True) -> Findings:
        """Compare a table with the jobs in its lineage, at every snapshot that main ever was.

        `settled`: an untroubled load or a clean-up came last, so that no branch may be left.
        """
        mode = self._world.modes[name]
        found = Findings()
        table = self.table(name)
        if table is None:
            return Findings(problems=[f"{name}: there is no table"])
        for entry in table.metadata.snapshot_log:
            snapshot = table.metadata.snapshot_by_id(entry.snapshot_id)
            if snapshot is None:
                found.problems.append(f"{name}: {entry.snapshot_id} is gone from the metadata")
                continue
            found.add(_compare(table, snapshot, name, mode))
        head = table.metadata.snapshot_by_name("main")
        jobs = _jobs(table, head) if head else []
        for job, times in Counter(jobs).items():
            if times > 1:
                found.problems.append(f"{name}: {job} is {times} times in the lineage")
        for one in told:
            if one.tables.get(name, {}).get("status") in IN and one.job_id not in jobs:
                found.problems.append(f"{name}: {one.job_id} was told to be in; in are {jobs}")
        if settled:
            found.add(self._rejected(name, jobs))
        others = sorted(set(table.metadata.refs) - {"main"})
        if settled and others:
            found.left += len(others)
            found.problems.append(f"{name}: left branches {others}")
        return found

    def uploads(self, name: str) -> Findings:
        """Count the uploads of data files that are open."""
        bucket, folder = self._data_folder(name)
        pages = self._world.lake.server.s3.get_paginator("list_multipart_uploads")
        keys = [
            upload["Key"]
            for page in pages.paginate(Bucket=bucket, Prefix=folder)
            for upload in page.get("Uploads", [])
        ]
        problems = [f"{name}: left uploads {keys}"] if keys else []
        return Findings(left=len(keys), problems=problems)

    def files(self, name: str, *, of_tasks: bool = False) -> Findings:
        """Compare the objects in the data folder with the files that snapshots name; `of_tasks`:
        those that lakeload has written itself."""
        table = self.table(name)
        bucket, folder = self._data_folder(name)
        there = {f"s3://{bucket}/{key}" for key in self._world.lake.keys(folder)}
        named = _named(table) if table else set()
        nobodys, gone = sorted(there - named), sorted(named - there)
        if of_tasks:
            nobodys = [one for one in nobodys if one.rpartition("/")[2].startswith(STAGING_PREFIX)]
        problems = [f"{name}: no snapshot names {nobodys}"] if nobodys else []
        problems += [f"{name}: snapshots name {gone}, which are gone"] if gone else []
        return Findings(left=len(nobodys), problems=problems)

    def _data_folder(self, name: str) -> tuple[str, str]:
        table = self.table(name)
        if table is None:
            raise RuntimeError(f"there is no table {name}")
        bucket, _, path = table.location().removeprefix("s3://").partition("/")
        return bucket, f"{path.rstrip('/')}/data/"

    def _rejected(self, name: str, jobs: Iterable[str]) -> Findings:
        """Compare the side table with the rejected records of the jobs that are in."""
        records = rejected_of if name in self._world.rejecting else (lambda _: [])
        wanted = Counter((job, record) for job in jobs for record in records(job))
        side = self.table(name + REJECTED_SUFFIX)
        rows: Counter[tuple[Any, Any]] = Counter()
        if side is not None:
            read = side.scan(selected_fields=("_supa_job_id", "raw_record")).to_arrow()
            rows = Counter(
                zip(read["_supa_job_id"].to_pylist(), read["raw_record"].to_pylist(), strict=True)
            )
        lost, doubled = (wanted - rows).total(), (rows - wanted).total()
        if not (lost or doubled):
            return Findings()
        held = dict(Counter(job for job, _ in rows.elements()))
        return Findings(lost, doubled, problems=[f"{name}: rejected {held}, after {list(jobs)}"])

    def denies(self, name: str, told: Told) -> list[str]:
        """Return what an ended sync said of a table and is not so, as it is right then."""
        if told.code is None:
            return []
        result = told.tables.get(name)
        jobs = self.jobs(name)
        if result is None:
            return [f"{name}: nothing was told of it: exit {told.code}, {told.stderr[-1500:]}"]
        if result["status"] in IN:
            return [] if told.job_id in jobs else [f"{name}: {result['status']}; in are {jobs}"]
        if told.job_id in jobs and not _says_unknown(result):
            return [f"{name}: {result['error']} was told of {told.job_id}, which is in"]
        return []


def _named(table: Table) -> set[str]:
    """Return the data and delete files of all snapshots, those on other branches included."""
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in table.metadata.snapshots
        for manifest in snapshot.manifests(table.io)
    }
    return {
        entry.data_file.file_path
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io)
    }


def _jobs(table: Table, head: Snapshot) -> list[str]:
    found = []
    snapshot: Snapshot | None = head
    while snapshot is not None:
        job = snapshot.summary.additional_properties.get(JOB_ID) if snapshot.summary else None
        if job:
            found.append(job)
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return found[::-1]


def _compare(table: Table, snapshot: Snapshot, name: str, mode: Mode) -> Findings:
    """Compare the rows of one snapshot with those of the jobs up to it."""
    expected: list[Row] = []
    jobs = _jobs(table, snapshot)
    for job in jobs:
        expected = loaded(expected, mode, job)
    columns = ("_supa_job_id", "id", "version")
    read = table.scan(selected_fields=columns, snapshot_id=snapshot.snapshot_id).to_arrow()
    rows = Counter(zip(*(read.column(column).to_pylist() for column in columns), strict=True))
    wanted = Counter(expected)
    lost, doubled = (wanted - rows).total(), (rows - wanted).total()
    problems = []
    if lost or doubled:
        held = dict(Counter(job for job, _, _ in rows.elements()))
        problems = [f"{name} at {snapshot.snapshot_id}: {held}, after the jobs {jobs}"]
    return Findings(lost, doubled, problems=problems)


def _says_unknown(result: dict[str, object]) -> bool:
    """Whether a failure warns that the job may be in."""
    error = result["error"]
    text = f"{error}".lower()
    unknown = ("unknown", "may be", "it is in, or it is not", "rows are in, or they are not")
    return "nothing was committed" not in text and any(words in text for words in unknown)
