"""What is said of a record that is rejected."""

from __future__ import annotations

from typing import Any

import pytest

from lakeload_jobs.rows.rejects import Reject, sentence


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ({"source_line": 1_200}, ": line 1,200"),
        ({"row_group": 2, "row_number": 7}, ", row group 2, row 7"),
        ({"row_number": 7}, ", row 7"),
        ({}, ""),
    ],
)
def test_a_rejected_record_is_named_by_what_is_known_of_its_place(
    place: dict[str, Any], where: str
) -> None:
    value = Reject("/in/a", "the value `x` is no int", b"{}", column_name="v", **place)
    record = Reject("/in/a", "it is not JSON", b"{a\n", **place)

    assert sentence(value.values()) == (
        f"reading `/in/a`{where}, column `v`: the value `x` is no int"
    )
    assert sentence(record.values()) == f"reading `/in/a`{where}: it is not JSON: `{{a`"
