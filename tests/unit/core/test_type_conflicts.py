"""What columns for values of other types are called, and what is said of such values."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.core.type_conflicts import (
    OTHER_TABLE,
    Misfit,
    misfit_clause,
    split_variants,
    variant_key,
    variant_name,
    variants_of,
    ways_out,
)
from lakeload_jobs.rows.columns import map_columns


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        ("amount", "string", "amount_string"),
        ("at", "timestamp_ntz", "at_timestamp_ntz"),
        ("price", "decimal(12,2)", "price_decimal"),
        ("a_", "struct<s:string>", "a_struct"),
        ("l", "array<bigint>", "l_array"),
        ("taken", "string", "taken_string_1"),
    ],
)
def test_the_name_is_made_of_the_column_and_the_type(target: str, kind: str, name: str) -> None:
    taken = ("amount", "TAKEN_STRING")
    assert variant_name(target, kind, lower=False, taken=taken) == name


def test_column_map_separates_columns_of_other_types() -> None:
    recorded = {
        "Amount": "amount",
        variant_key("amount", "string"): "amount_string",
        variant_key("amount", "double"): "amount_double",
        variant_key("amount_string", "double"): "amount_string_double",
    }
    assert variants_of("amount", recorded) == ("amount_string", "amount_double")
    assert split_variants(recorded)[0] == {"Amount": "amount"}
    mapping = map_columns(["Amount", "amount string"], ColumnsSpec(), recorded=recorded, lower=True)
    # The name of such a column is taken.
    assert mapping.column_map == {**recorded, "amount string": "amount_string_1"}
    assert {"amount", "amount_string", "amount_double"} <= mapping.families


def test_type_conflict_hints_are_valid_settings() -> None:
    known = {
        "a": Misfit("Full Name", "timestamp_ntz", None),
        "b": Misfit("b", "struct<x:int>", "the first value that does not fit is `x`", "b.x"),
    }
    assert misfit_clause("A", known) == "; every value of this load fits the table's type"
    assert misfit_clause("b.x", known) == "; the first value that does not fit is `x`"
    assert [misfit_clause(name, known) for name in ("b", "b.y", "c")] == [""] * 3
    assert [way.split("`")[1] for way in ways_out(["A"], known)] == [
        "columns.types: {Full Name: timestamp_ntz}",
        "on_type_conflict: NEW_COLUMN",
    ]
    assert [way.split("`")[1] for way in ways_out(["A", "b"], known)] == [
        "on_type_conflict: NEW_COLUMN",
        "columns.exclude",
    ]
    assert "`schema_changes: ADD_COLUMNS`" in ways_out(["b"], known, adds=False)[0]
    assert ways_out(["b"], known, ["B"]) == [OTHER_TABLE]
