"""Columns of several files: a set of files makes one table, however it is split into loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.core.names import spelling
from lakeload_jobs.rows.columns import map_columns
from lakeload_jobs.sources.base import EarlierColumns
from lakeload_jobs.sources.files.united_columns import (
    check_one_table,
    other_spellings,
    shared_names,
)

NAMES = ("Val", "val", "id", "ID", "Customer ID", "customer_id")


def loaded(
    files: Mapping[str, Sequence[str]], recorded: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Load files as one load: return the target of each name of each file, and the column map."""
    shared = shared_names(files, EarlierColumns({}, recorded), {})
    own = {
        path: {name: shared.get(path, {}).get(name, name) for name in names}
        for path, names in files.items()
    }
    names = tuple(dict.fromkeys(name for spelled in own.values() for name in spelled.values()))
    spellings = other_spellings(shared, names)
    mapping = map_columns(names, ColumnsSpec(), recorded=recorded, spellings=spellings)
    targets = {column.source: column.target for column in mapping.columns}
    placed = {path: {name: targets[one] for name, one in own[path].items()} for path in own}
    return placed, {**recorded, **mapping.column_map}


@given(
    st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), max_size=5),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_files_in_any_split_into_loads_make_the_same_columns(
    headers: list[list[str]], cuts: list[bool]
) -> None:
    files = {str(place): ["key", *names] for place, names in enumerate(headers)}
    split: list[dict[str, list[str]]] = [{}]
    for (path, names), cut in zip(files.items(), cuts, strict=False):
        if cut:
            split.append({})
        split[-1][path] = names

    def load(parts: Sequence[Mapping[str, Sequence[str]]]) -> Any:
        recorded: dict[str, str] = {}
        placed: dict[str, Any] = {}
        for part in parts:
            if not part:
                continue
            try:
                own, recorded = loaded(part, recorded)
            except InvalidInput:
                return "refused"
            placed |= own
        return placed

    one, several = load([files] if files else []), load(split)

    # A name between two columns that both could be meant is refused, in some splits earlier.
    if one != "refused" and several != "refused":
        assert one == several
    else:
        assert any(len({*map(spelling, names)}) < len(names) for names in headers)


@pytest.mark.parametrize(
    ("files", "recorded", "odd"),
    [
        ({"a": ["id", "v"], "b": ["x"]}, {}, "b"),
        ({"a": ["id", "v"], "b": ["x"], "c": ["V", "x"]}, {}, None),
        ({"a": ["x"]}, {"id": "id"}, "a"),
        ({"a": ["ID", "x"]}, {"id": "key"}, None),
        ({"a": ["id"], "b": ["v"]}, {"id": "id", "v": "v"}, None),
        ({"a": ["id"], "b": ["x"], "c": ["x"]}, {"id": "id"}, "b"),
        ({"a": [], "b": ["id"], "c": []}, {}, None),
    ],
)
def test_file_that_shares_no_column_by_way_of_others_is_refused(
    files: dict[str, list[str]], recorded: dict[str, str], odd: str | None
) -> None:
    earlier = EarlierColumns(dict.fromkeys(recorded, "int"), recorded)

    def check(rename: dict[str, str]) -> None:
        check_one_table(files, earlier, rename, lambda own, wanted: "hint")

    if odd is None:
        check({})
        return
    with pytest.raises(LoadFailed, match=f"`{odd}` has no column in common") as failed:
        check({})
    assert failed.value.hint == "hint"
    if recorded:
        check({files[odd][0]: "id"})
