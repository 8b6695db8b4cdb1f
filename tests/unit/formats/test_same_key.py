"""What rows of one load with the same key are: an error, a warning or a note."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload_jobs.contract.result import SameKey
from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from lakeload_jobs.formats.same_key import KeyNotUnique, same_key_sentence
from tests.unit.launch.specs import table

SAME = SameKey(36, "`sku` = BEV-1")
FILES = replace(table("supplies"), mode="UPSERT", primary_key=("sku",))


def read(key: tuple[str, ...] | None = None, query: str | None = None) -> TableSpec:
    where = JdbcInput("POSTGRESQL", "db", 5432, "shop", "public", "supplies", query=query, key=key)
    return replace(FILES, input=where)


@pytest.mark.parametrize("spec", [FILES, read(query="SELECT 1"), read(key=("sku",))])
def test_files_queries_and_keys_of_the_database_get_a_warning(spec: TableSpec) -> None:
    assert same_key_sentence(spec, None, 65, loaded_before=False) == ("WARN", "")
    assert same_key_sentence(spec, SAME, 65, loaded_before=False) == (
        "WARN",
        "36 of 65 rows were replaced by later rows of this load with the same `primary_key`, such "
        "as `sku` = BEV-1; if they are different records, it lacks a column",
    )
    with pytest.raises(KeyNotUnique):
        same_key_sentence(replace(spec, on_same_key="FAIL"), SAME, 65, loaded_before=True)


def test_a_key_given_for_a_table_of_a_database_has_to_be_unique() -> None:
    with pytest.raises(KeyNotUnique) as failed:
        same_key_sentence(read(), SAME, 65, loaded_before=False)

    assert "36 of 65 rows have the key of a later row of this load, such as `sku` = BEV-1" in str(
        failed.value
    )
    assert "`on_same_key: WARN`" in str(failed.value.hint)
    allowed = replace(read(), on_same_key="ALLOW")
    assert same_key_sentence(allowed, SAME, 65, loaded_before=False)[0] == "ALLOW"


def test_a_table_that_an_earlier_version_has_loaded_gets_a_warning_so_far() -> None:
    policy, sentence = same_key_sentence(read(), SAME, 65, loaded_before=True)

    assert policy == "WARN"
    assert "From the next version on this is an error (`on_same_key`)" in sentence
