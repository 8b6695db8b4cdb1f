"""Who may load into an Iceberg table, and what people are told who may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import AppendAgain, Mode
from lakeload_jobs.formats.iceberg.rules.admission import (
    Start,
    check_only_pipeline,
    check_same_load,
    check_state_rows,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY, JOBS, PipelineState
from tests.unit.formats.iceberg.rules.table import JOB, Table, job

_ON = replace(JOB, job_id="j9", goes_on=True)


def test_admission_without_a_table_is_a_first_run() -> None:
    assert open_table(None, "main", JOB) == Start(None, 0, None, first_run=True)


def test_admission_returns_the_state_that_publish_compares() -> None:
    table = Table()
    table.publish(state=5)
    table.commit()
    start = open_table(table.facts, "main", _ON)
    assert (start.head, start.seq, start.first_run, start.uuid) == (2, 1, False, "u")
    assert start.state is not None
    assert start.state.state == 5
    assert start.ask_rows_of is None


def test_first_run_accepts_an_empty_table_of_an_abandoned_attempt() -> None:
    table = Table()
    assert open_table(table.facts, "main", JOB).first_run
    table.commit(records=0)
    assert open_table(table.facts, "main", JOB).first_run


@pytest.mark.parametrize(
    ("properties", "rows", "why"),
    [
        ({}, 0, "lakeload did not create it"),
        ({CREATED_BY: "web"}, 0, "pipeline `web` has created it for its own first load"),
        ({CREATED_BY: "shop"}, 5, "it holds rows that lakeload did not write"),
    ],
)
def test_first_run_under_fail_rejects_rows_of_another_writer(
    properties: dict[str, str], rows: int, why: str
) -> None:
    table = Table(properties=properties)
    table.commit(records=rows)
    with pytest.raises(LoadFailed, match=why) as caught:
        open_table(table.facts, "main", JOB)
    assert "`table_handling: APPEND`" in str(caught.value.hint)
    assert open_table(table.facts, "main", replace(JOB, table_handling="APPEND")).first_run


def test_first_run_under_fail_rejects_the_table_of_another_iceberg_pipeline() -> None:
    table = Table()
    table.publish(job("x", "web", source="web.csv"))
    with pytest.raises(LoadFailed, match="pipeline `web` loads into it") as caught:
        open_table(table.facts, "main", JOB)
    assert "former name" not in str(caught.value.hint)


def test_renamed_pipeline_is_rejected_with_its_former_name() -> None:
    table = Table()
    table.publish(job("x", "web"))
    with pytest.raises(LoadFailed) as caught:
        open_table(table.facts, "main", JOB)
    assert "restore `name: web`" in str(caught.value.hint)
    start = open_table(table.facts, "main", replace(JOB, table_handling="APPEND"))
    assert "pipeline `web` loads `orders.csv` into `db.orders` too" in start.warnings[0]


def test_only_a_first_run_is_rejected_for_rows_of_others() -> None:
    table = Table()
    table.publish()
    table.publish(job("x", "web"))
    assert not open_table(table.facts, "main", job("j2")).first_run


def test_a_pipeline_loads_one_source_into_a_table() -> None:
    table = Table()
    table.publish()
    with pytest.raises(InvalidInput, match=r"loads `orders\.csv` into `db\.orders`; `b\.csv`"):
        open_table(table.facts, "main", job("j2", source="b.csv"))


def test_job_id_with_other_settings_is_rejected() -> None:
    table = Table()
    table.publish()
    check_same_load(table.facts, "main", JOB)
    with pytest.raises(InvalidInput, match="with other settings"):
        check_same_load(table.facts, "main", replace(JOB, fingerprint="0" * 64))
    table.roll_back(None)
    check_same_load(table.facts, "main", replace(JOB, fingerprint="0" * 64))


def test_earlier_job_id_with_other_settings_is_rejected_from_its_snapshot() -> None:
    table = Table()
    own = {"lakeload.job-id": "old", "lakeload.pipeline": "shop", "lakeload.fingerprint": "e" * 64}
    table.commit(own)
    table.publish()
    with pytest.raises(InvalidInput, match="fingerprint eeeeeeeeeeee, now ffffffffffff"):
        check_same_load(table.facts, "main", job("old"))


@pytest.mark.parametrize("marked", [True, False])
def test_job_id_of_another_pipeline_is_rejected(marked: bool) -> None:
    table = Table()
    table.publish(job("j1", "web"), marked=marked)
    if marked:
        del table.properties[JOBS]
    with pytest.raises(InvalidInput, match="is already a job of pipeline `web`"):
        check_same_load(table.facts, "main", JOB)
    table.roll_back(None)
    check_same_load(table.facts, "main", JOB)


def test_rolled_back_state_is_rejected_with_a_hint() -> None:
    table = Table()
    table.publish(state=1)
    table.publish(job("j2"), state=2)
    table.roll_back(1)
    with pytest.raises(LoadFailed) as caught:
        open_table(table.facts, "main", _ON)
    assert "up to its job `j2`, snapshot 2 of 2023-11-14 22:13:20 UTC" in str(caught.value)
    assert "branch `main` is at snapshot 1 of 2023-11-14" in str(caught.value)
    hint = str(caught.value.hint)
    assert "`CALL lake.system.set_current_snapshot('db.orders', 2)`" in hint
    assert "`lakeload reset`" in hint
    assert "`--full-refresh`" not in hint


def test_a_rollback_of_another_branch_is_undone_by_another_statement() -> None:
    table = Table()
    table.publish(state=1)
    table.publish(job("j2"), state=2)
    table.refs = {"main": 2, "audit": 1}
    with pytest.raises(LoadFailed) as caught:
        open_table(table.facts, "audit", _ON)
    replace_branch = "ALTER TABLE lake.db.orders REPLACE BRANCH `audit` AS OF VERSION 2"
    assert replace_branch in str(caught.value.hint)


def test_a_rollback_of_main_is_undone_there_for_a_branch_that_begins_with_its_rows() -> None:
    table = Table()
    table.publish(state=1)
    table.publish(job("j2"), state=2)
    table.roll_back(1)
    with pytest.raises(LoadFailed) as caught:
        open_table(table.facts, "audit", _ON)
    hint = str(caught.value.hint)
    assert "`CALL lake.system.set_current_snapshot('db.orders', 2)`" in hint


def test_a_rollback_is_not_undone_over_what_came_after() -> None:
    table = Table()
    table.publish(state=1)
    table.publish(job("j2"), state=2)
    table.roll_back(1)
    table.commit()
    with pytest.raises(LoadFailed) as caught:
        open_table(table.facts, "main", replace(_ON, mode="UPSERT"))
    assert "CALL" not in str(caught.value.hint)
    assert "`--full-refresh`" in str(caught.value.hint)


def test_load_without_a_state_ignores_a_rollback() -> None:
    table = Table()
    table.publish(state=1)
    table.roll_back(None)
    assert not open_table(table.facts, "main", replace(_ON, goes_on=False)).first_run


def test_a_pipeline_without_a_state_so_far_begins_with_everything_also_after_a_rollback() -> None:
    table = Table()
    table.publish()
    table.roll_back(None)
    start = open_table(table.facts, "main", _ON)
    assert start.state is not None
    assert start.state.state is None


def test_expired_state_is_accepted_while_its_rows_exist() -> None:
    table = Table()
    table.publish(state=1)
    table.commit()
    table.commit()
    table.expire([1, 2])
    start = open_table(table.facts, "main", _ON)
    assert start.ask_rows_of == "j1"
    check_state_rows(start, table.facts, "main", _ON, True)
    with pytest.raises(LoadFailed, match=r"snapshot 1 \(expired\)"):
        check_state_rows(start, table.facts, "main", _ON, False)


def test_expired_state_without_rows_is_not_searched() -> None:
    table = Table()
    state = PipelineState("orders.csv", "j1", 99, "f", {}, state=1)
    table.properties["lakeload.state.shop"] = state.to_property()
    table.commit()
    table.commit()
    table.expire([1])
    assert open_table(table.facts, "main", _ON).ask_rows_of is None


def test_keys_are_compared_with_a_table_of_this_pipeline_alone() -> None:
    table = Table()
    table.publish()
    check_only_pipeline(table.facts, JOB)

    table.publish(job(pipeline="other", job_id="j2"))

    with pytest.raises(InvalidInput, match="pipeline `other` loads into"):
        check_only_pipeline(table.facts, JOB)


@pytest.mark.parametrize(
    ("changes", "problem", "modes"),
    [
        ({"properties": {"write.parquet.compression-codec": "BROTLI"}}, "`BROTLI`", ("APPEND",)),
        ({"format_version": 1}, "format version 1", ("APPEND", "OVERWRITE")),
        ({"columns": {"id": "long", "_Spec_ID": "int"}}, "`_Spec_ID`", ()),
    ],
)
def test_table_that_spark_cannot_write_or_merge_is_rejected(
    changes: dict[str, Any], problem: str, modes: tuple[Mode, ...]
) -> None:
    facts = replace(Table().facts, **changes)

    for mode in (*modes, "UPSERT"):
        with pytest.raises(LoadFailed) as failed:
            open_table(facts, "main", replace(JOB, mode=mode, table_handling="APPEND"))
        assert problem in failed.value.message
        assert failed.value.hint
    if not modes:
        open_table(facts, "main", replace(JOB, table_handling="APPEND"))
    orc = {"write.format.default": "orc", "write.parquet.compression-codec": "brotli"}
    now = replace(Table().facts, properties=orc)
    open_table(now, "main", replace(JOB, table_handling="APPEND"))


AGAIN = AppendAgain("WARN", "set `mode: OVERWRITE`")


def test_append_of_rows_that_the_branch_has_warns_with_the_last_load() -> None:
    table = Table()
    table.publish(rows=5, marked=True)

    start = open_table(table.facts, "main", job("j2", append_again=AGAIN))

    [text] = start.warnings
    assert "job `j1` of this pipeline has loaded 5 rows of it at 2023-11-14" in text
    assert open_table(table.facts, "main", job("j2")).warnings == ()
    with pytest.raises(LoadFailed, match="would append all rows"):
        open_table(table.facts, "main", job("j2", append_again=replace(AGAIN, policy="FAIL")))


def test_append_after_a_rollback_or_without_its_snapshot() -> None:
    table = Table()
    table.commit(records=0)
    table.publish()
    table.roll_back(1)
    assert open_table(table.facts, "main", job("j2", append_again=AGAIN)).warnings == ()

    table = Table()
    table.publish()
    table.commit()
    table.expire([1])
    [text] = open_table(table.facts, "main", job("j2", append_again=AGAIN)).warnings
    assert "job `j1` of this pipeline has loaded rows of it, " in text
