"""A table's partition spec and the one its pipeline asks for: the steps between, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionField, SchemaChanges
from lakeload_jobs.formats.iceberg.rules.partitions import (
    kept_fields,
    parse_partition_field,
    repartition,
    spec_field,
)
from lakeload_jobs.formats.iceberg.rules.schema import SchemaPlan, with_partitions


def fields(*texts: str) -> tuple[PartitionField, ...]:
    return tuple(map(parse_partition_field, texts))


@pytest.mark.parametrize(
    ("transform", "column", "text"),
    [
        ("identity", "country", "country"),
        ("day", "at", "day(at)"),
        ("bucket[16]", "id", "bucket(16, id)"),
        ("truncate[4]", "first name", "truncate(4, `first name`)"),
        ("zorder[2]", "id", "zorder[2](id)"),
    ],
)
def test_a_field_of_a_table_is_written_as_partition_by_writes_it(
    transform: str, column: str, text: str
) -> None:
    assert spec_field(transform, column) == text


@pytest.mark.parametrize(
    ("before", "wanted", "keep", "add", "moves"),
    [
        (["a"], ["b"], 0, ["b"], False),
        ([], ["day(at)"], 0, ["day(at)"], False),
        (["day(at)"], [], 0, [], False),
        (["a", "b"], ["a", "b", "c"], 2, ["c"], False),
        (["a", "b", "c"], ["a", "c"], 1, ["c"], True),
        (["a", "b"], ["B", "A"], 0, ["B", "A"], True),
        (["bucket(16, id)"], ["bucket(8, id)"], 0, ["bucket(8, id)"], False),
    ],
)
def test_fields_stay_up_to_the_first_that_differs(
    before: Sequence[str], wanted: Sequence[str], keep: int, add: Sequence[str], moves: bool
) -> None:
    step = repartition(before, fields(*wanted))
    assert step is not None
    assert (step.keep, step.add, step.moves) == (keep, fields(*add), moves)
    assert [*step.before[:keep], *map(str.lower, step.now[keep:])] == list(map(str.lower, wanted))


def test_equal_or_unset_partition_spec_is_kept() -> None:
    assert repartition(["Country", "day(at)"], fields("country", "days(AT)")) is None
    assert repartition([], ()) is None
    assert repartition(["country"], None) is None


@pytest.mark.parametrize("policy", ["ADD_COLUMNS", "FAIL"])
def test_partition_change_without_evolution_is_rejected_with_both_specs(
    policy: SchemaChanges,
) -> None:
    def planned(table: Sequence[str], wanted: Sequence[PartitionField] | None) -> SchemaPlan:
        return with_partitions(
            SchemaPlan(), table, wanted, policy, target="shop.orders", columns={"id": "int"}
        )

    with pytest.raises(LoadFailed) as refused:
        planned(["day(at)", "country"], fields("bucket(16, id)"))
    assert str(refused.value) == (
        "`shop.orders` is partitioned by `day(at)`, `country`, but `partition_by` is "
        f"`bucket(16, id)`; `schema_changes` is {policy}"
    )
    assert refused.value.hint == (
        "set `schema_changes: EVOLVE`, or write `partition_by: [day(at), country]`; without "
        "`partition_by` the table keeps what it has"
    )
    with pytest.raises(LoadFailed, match=r"is not partitioned, but `partition_by` is `id`"):
        planned([], fields("id"))
    assert planned(["day(at)"], None) == SchemaPlan()


def test_repartition_steps_are_one_sentence() -> None:
    def told(before: Sequence[str], *wanted: str) -> tuple[str, ...]:
        plan = with_partitions(
            SchemaPlan(), before, fields(*wanted), "EVOLVE", target="shop.orders", columns={}
        )
        assert plan.changes_table
        assert not plan.changes_columns
        return plan.lines()

    assert told(["a"], "day(at)", "id") == (
        "partitions new files by `day(at)`, `id`, no longer by `a`",
    )
    assert told([], "a") == ("partitions new files by `a`",)
    assert told(["a"]) == ("writes new files without partitions, no longer by `a`",)


def test_replaced_columns_keep_the_possible_partitions() -> None:
    before = ["Country", "day(at)", "bucket(4, id)", "zorder[2](id)"]
    columns = {"country": "string", "at": "string", "id": "long"}
    assert kept_fields(before, columns) == fields("Country", "bucket(4, id)")
    plan = with_partitions(
        SchemaPlan(replace=True), before, None, "EVOLVE", target="shop.orders", columns=columns
    )
    assert plan.repartition is not None
    assert plan.repartition.now == ("Country", "bucket(4, id)")
