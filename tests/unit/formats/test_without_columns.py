"""A source without columns, and so without rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import StructType

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.base import ExpectedColumns
from lakeload_jobs.formats.read_rows import prepare_rows
from tests.unit.launch.specs import job_spec


@dataclass
class Rows:
    """Rows of a source that tells of no column; counts how often it is read."""

    repeatable: bool
    reads: int = 0
    names: tuple[str, ...] = ()
    schema: StructType = field(default_factory=StructType)

    @property
    def frame(self) -> Rows:
        return self

    def isEmpty(self) -> bool:
        self.reads += 1
        return False


def test_rows_without_columns_are_refused_by_a_load_and_not_read_by_a_plan(
    tmp_path: Path,
) -> None:
    spec = job_spec(RunFolder(tmp_path))
    for rows in (Rows(repeatable=False), Rows(repeatable=True)):
        given = (spec, spec.tables[0], cast("Any", rows), ExpectedColumns())
        prepared = prepare_rows(*given, may_read=False)
        assert (prepared.mapping.columns, rows.reads) == ((), 0)
        with pytest.raises(LoadFailed, match="rows but no columns"):
            prepare_rows(*given)
