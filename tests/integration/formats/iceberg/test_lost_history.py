"""Tables whose metadata no longer tells which jobs are in: the data is asked (I5, I6)."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import FilesInput, JobSpec
from lakeload_jobs.formats.iceberg.load.tables import jvm, load
from lakeload_jobs.formats.iceberg.rules.facts import JOBS, JOBS_REMEMBERED
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.test_publish_races import before_publishing, foreign_append


def forget(loads: Loads, first: int) -> None:
    """Somebody else appends two rows, and expires every snapshot but the last of each branch.

    Two: the parent of the oldest one that is left is still known to belong to the branch.
    """
    foreign_append(loads, first)
    foreign_append(loads, first + 1)
    java = load(loads.spark, loads.schema, "orders")
    assert java is not None
    java.expireSnapshots().expireOlderThan(1 << 60).retainLast(1).commit()
    metadata = loads.read().metadata
    assert len(metadata.snapshots) == len({at.snapshot_id for at in metadata.refs.values()})


def overflow(loads: Loads) -> None:
    """As many other jobs were published since as a table remembers."""
    others = ",".join(f"{number:016x}:1" for number in range(JOBS_REMEMBERED))
    java = load(loads.spark, loads.schema, "orders")
    assert java is not None
    java.updateProperties().set(JOBS, others).commit()


def again(loads: Loads, spec: JobSpec) -> TableResult:
    """Run the same job once more, as another attempt."""
    return loads.run(replace(spec, attempt_id=str(uuid.uuid4()))).tables[0]


def ids(loads: Loads) -> list[int]:
    return [row["id"] for row in loads.rows()]


def test_job_missing_in_the_history_is_searched_in_the_data(loads: Loads) -> None:
    pattern, folder = str(loads.folder / "*.parquet"), str(loads.folder)
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=folder)
    table = loads.table(input=source)
    loads.file([{"id": 1}])
    first = loads.spec(table)
    assert loads.run(first).tables[0].status == "LOADED"

    forget(loads, 50)
    assert again(loads, first).status == "NO_OP"
    # The state's snapshot is gone as well, and its rows are there: the load reads on.
    loads.file([{"id": 2}])
    second = loads.spec(table)
    assert loads.run(second).tables[0].rows == 1
    assert ids(loads) == [1, 2, 50, 51]

    forget(loads, 60)
    overflow(loads)
    assert [again(loads, spec).status for spec in (first, second)] == ["NO_OP", "NO_OP"]
    assert ids(loads) == [1, 2, 50, 51, 60, 61]

    # Somebody takes the rows of the latest job away, and then the history: nobody may read on.
    java = load(loads.spark, loads.schema, "orders")
    assert java is not None
    ours = jvm(loads.spark).org.apache.iceberg.expressions.Expressions.equal("id", 2)
    java.newDelete().deleteFromRowFilter(ours).commit()
    forget(loads, 70)
    loads.file([{"id": 3}])
    stopped = loads.load(table)
    assert stopped.error is not None
    assert "the table was rolled back" in stopped.error.message
    assert ids(loads) == [1, 50, 51, 60, 61, 70, 71]


def test_concurrent_attempt_missing_in_the_history_is_found_in_the_data(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads.loaded(loads.table(loads.file([{"id": 0}])))
    spec = loads.spec(loads.table(loads.file([{"id": 1}])))
    twins: list[TableResult] = []

    def meanwhile() -> None:
        twins.append(again(loads, spec))
        forget(loads, 50)

    before_publishing(monkeypatch, meanwhile)
    mine = loads.run(spec).tables[0]

    assert [twins[0].status, mine.status] == ["LOADED", "NO_OP"]
    assert ids(loads) == [0, 1, 50, 51]
    assert list(loads.read().metadata.refs) == ["main"]
