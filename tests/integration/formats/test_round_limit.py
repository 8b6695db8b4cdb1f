"""Files in rounds: the columns of the first round are those of all files that are there."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from lakeload_jobs.contract.spec import FilesInput, RoundLimit
from tests.integration.formats.worlds import World, load


def test_first_round_has_the_columns_of_all_files(world: World) -> None:
    files: list[list[dict[str, Any]]] = [[{"n": 1}], [{"n": 2, "note": "b"}], [{"n": 3, "at": 0.5}]]
    for number, rows in enumerate(files):
        os.utime(world.file(f"{number}.parquet", rows), (1_700_000_000 + number,) * 2)
    table = world.table(world.folder(), round_limit=RoundLimit(files=1))
    assert isinstance(table.input, FilesInput)
    table = replace(table, input=replace(table.input, incremental=True))

    rounds = [load(world, table)]
    first = world.rows()
    rounds += [load(world, table) for _ in range(3)]

    assert [done.rows for done in rounds] == [1, 1, 1, 0]
    assert [done.more for done in rounds] == [True, True, False, False]
    assert [(row["n"], row["note"], row["at"]) for row in first] == [(1, None, None)]
    assert sorted(row["n"] for row in world.rows()) == [1, 2, 3]
