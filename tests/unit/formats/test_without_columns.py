"""A source without columns, and so without rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import StructType

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.base import ExpectedColumns
from lakeload_jobs.formats.read_rows import prepare_rows
from lakeload_jobs.sources.base import Rows, Splits
from lakeload_jobs.sources.spark_frames import as_handed_over
from tests.unit.launch.specs import job_spec


@dataclass
class Frame:
    """Rows of a source that tells of no column; counts how often it is read."""

    reads: int = 0

    def isEmpty(self) -> bool:
        self.reads += 1
        return False


def test_rows_without_columns_are_refused_by_a_load_and_not_read_by_a_plan(
    tmp_path: Path,
) -> None:
    spec = job_spec(RunFolder(tmp_path))
    for repeatable in (False, True):
        frame = cast("Any", Frame())
        splits = Splits((0,), as_handed_over, frame=frame)
        rows = Rows(cast("Any", None), StructType(), (), splits, repeatable=repeatable)
        given = (spec, spec.tables[0], rows, ExpectedColumns())
        prepared = prepare_rows(*given, may_read=False)
        assert (prepared.mapping.columns, frame.reads) == ((), 0)
        with pytest.raises(LoadFailed, match="rows but no columns"):
            prepare_rows(*given)
