"""What `schema_changes` lets through in plain Parquet."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.parquet.schema_change import (
    ChangedType,
    SchemaDifference,
    check_schema_change,
    schema_difference,
)

BEFORE = {"id": "int64", "name": "string"}


def test_equal_columns_have_no_difference_in_any_order_or_case() -> None:
    assert schema_difference(BEFORE, {"NAME": "string", "id": "int64"}) == SchemaDifference()


def test_every_kind_of_difference_is_found_at_once() -> None:
    assert schema_difference(BEFORE, {"id": "string", "new": "bool"}) == SchemaDifference(
        added=("new",), removed=("name",), changed=(ChangedType("id", "int64", "string"),)
    )


def test_a_table_without_columns_takes_any() -> None:
    assert check_schema_change({}, BEFORE, "FAIL") == SchemaDifference()


def test_added_columns_are_allowed_unless_the_policy_is_fail() -> None:
    now = {**BEFORE, "new": "bool"}
    assert check_schema_change(BEFORE, now, "ADD_COLUMNS").added == ("new",)
    assert check_schema_change(BEFORE, now, "EVOLVE").added == ("new",)
    with pytest.raises(LoadFailed, match="columns that the table does not: `new`"):
        check_schema_change(BEFORE, now, "FAIL")


def test_removed_columns_are_always_allowed() -> None:
    assert check_schema_change(BEFORE, {"id": "int64"}, "FAIL").removed == ("name",)


@pytest.mark.parametrize("policy", ["ADD_COLUMNS", "EVOLVE", "FAIL"])
def test_a_changed_type_is_refused_naming_both(policy: str) -> None:
    with pytest.raises(LoadFailed, match="`id` was `int64` and is `decimal128") as raised:
        check_schema_change(BEFORE, {**BEFORE, "id": "decimal128(9, 0)"}, policy)  # type: ignore[arg-type]
    assert "on_type_conflict: NEW_COLUMN" in (raised.value.hint or "")
    assert ("schema_changes: ADD_COLUMNS" in (raised.value.hint or "")) == (policy == "FAIL")


def test_fields_that_are_new_in_structs_are_added_as_columns_are() -> None:
    before = {"s": "struct<a:int>", "l": "array<struct<a:int>>"}
    now = {"s": "struct<b:int>", "L": "array<struct<a:int,c:struct<d:int>>>"}

    difference = check_schema_change(before, now, "ADD_COLUMNS")

    assert difference == SchemaDifference(added_fields=("s.b", "L.element.c"))
    assert check_schema_change(before, now, "EVOLVE") == difference
    with pytest.raises(
        LoadFailed, match=r"fields that the table does not: `s\.b`, `L\.element\.c`"
    ):
        check_schema_change(before, now, "FAIL")
    with pytest.raises(LoadFailed, match=r"columns changed: `s\.a` was `int` and is `bigint`"):
        check_schema_change(before, {"s": "struct<a:bigint,b:int>"}, "EVOLVE")
