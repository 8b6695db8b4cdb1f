"""Metrics: text that Prometheus's own parser takes, and numbers that go on from job to job."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text_format

from lakeload.monitoring.metrics import FAMILIES, Metrics, Monitor, locked
from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.result import NewData
from tests.open_metrics import samples
from tests.unit.monitoring.documents import AT, ERROR, FAILED, IDLE, LOADED, document, later

TARGETS = ("lake.orders",)
Values = dict[tuple[str, ...], float]


def values(text: str) -> Values:
    """Return all samples: the name and the labels but the pipeline's, and the value."""
    found: Values = {}
    for sample in samples(text):
        labels = dict(sample.labels)
        assert labels.pop("pipeline", "shop") == "shop"
        found[(sample.name.removeprefix("lakeload_"), *labels.values())] = sample.value
    return found


def test_metrics_of_a_load_are_those_of_its_document() -> None:
    metrics = Metrics("shop")
    position = replace(LOADED, position=later(-30), rejected=1, deleted=2)
    metrics.add(document(position), TARGETS)

    assert values(metrics.text()) == {
        ("build_info", _version()): 1,
        ("jobs_total", "SUCCEEDED"): 1,
        ("job_exit_code",): 0,
        ("job_consecutive_failures",): 0,
        ("job_last_end_timestamp_seconds",): AT.timestamp() + 4,
        ("job_last_success_timestamp_seconds",): AT.timestamp() + 4,
        ("job_duration_seconds_total",): 4,
        ("job_phase_duration_seconds_total", "start"): 0.5,
        ("job_phase_duration_seconds_total", "tables"): 3.5,
        ("job_cpu_seconds_total",): 2.5,
        ("job_peak_memory_bytes",): 1 << 20,
        ("job_requests_total", "s3", "GetObject"): 4,
        ("table_loads_total", "lake.orders", "LOADED"): 1,
        ("table_rows_total", "lake.orders"): 3,
        ("table_bytes_total", "lake.orders"): 90,
        ("table_files_total", "lake.orders"): 2,
        ("table_rejected_records_total", "lake.orders"): 1,
        ("table_deleted_rows_total", "lake.orders"): 2,
        ("table_duration_seconds_total", "lake.orders"): 1.5,
        ("table_stage_duration_seconds_total", "lake.orders", "count"): 1,
        ("table_stage_duration_seconds_total", "lake.orders", "stage"): 2,
        ("table_position_timestamp_seconds", "lake.orders"): later(-30).timestamp(),
        ("table_lag_seconds", "lake.orders"): 30 * 60 + 4,
        ("table_last_success_timestamp_seconds", "lake.orders"): AT.timestamp() + 4,
        ("table_consecutive_failures", "lake.orders"): 0,
    }


def test_metrics_of_later_jobs_go_on_from_the_text_of_earlier_ones() -> None:
    metrics = Metrics("shop")
    metrics.add(document(LOADED), TARGETS)
    for at, table in ((1, FAILED), (2, FAILED), (3, IDLE)):
        metrics = Metrics("shop", metrics.text())
        if at == 3:
            found = values(metrics.text())
            assert found["table_consecutive_failures", "lake.orders"] == 2
            assert found["job_consecutive_failures",] == 2
            assert (
                found["table_last_success_timestamp_seconds", "lake.orders"]
                == later(0).timestamp() + 4
            )
        metrics.add(document(table, at=later(at)), TARGETS)

    found = values(metrics.text())
    assert found["jobs_total", "SUCCEEDED"] == 2
    assert found["jobs_total", "FAILED"] == 2
    assert found["table_rows_total", "lake.orders"] == 3
    assert found["table_consecutive_failures", "lake.orders"] == 0
    assert found["job_last_success_timestamp_seconds",] == later(3).timestamp() + 4
    assert found["job_requests_total", "s3", "GetObject"] == 16


def test_job_that_is_tried_again_counts_its_rows_once() -> None:
    metrics = Metrics("shop")
    stale = replace(LOADED, status="LOADED_CATALOG_OUT_OF_DATE", rejected=1, deleted=1)
    metrics.add(document(stale), TARGETS)
    metrics.add(document(replace(stale, already=True)), TARGETS)
    metrics.add(document(replace(stale, status="NO_OP", already=True)), TARGETS)

    found = values(metrics.text())
    counted = ("rows", "bytes", "files", "rejected_records", "deleted_rows")
    assert [found[f"table_{name}_total", "lake.orders"] for name in counted] == [3, 90, 2, 1, 1]


def test_lag_grows_while_a_table_or_its_whole_job_fails() -> None:
    metrics = Metrics("shop")
    metrics.add(document(replace(LOADED, position=AT)), TARGETS)
    lags = []
    for number, failed in enumerate((document(FAILED, at=later(1)), _refused(later(2))), 1):
        metrics = Metrics("shop", metrics.text())
        metrics.add(failed, TARGETS)
        lags.append(values(metrics.text())["table_lag_seconds", "lake.orders"])
        assert lags[-1] == 60 * number + 4


def test_new_data_that_waits_is_measured_until_it_is_loaded() -> None:
    metrics, found = Metrics("shop"), []
    waiting = replace(IDLE, waiting=NewData(later(-2), 4096))
    rows_wait = replace(IDLE, waiting=NewData(later(-2)))
    for number, table in enumerate((LOADED, waiting, rows_wait, FAILED, waiting, LOADED)):
        metrics = Metrics("shop", metrics.text())
        metrics.add(document(table, at=later(number)), TARGETS)
        now = values(metrics.text())
        found.append(
            tuple(
                now.get((f"table_waiting_{what}", "lake.orders"))
                for what in ("age_seconds", "bytes")
            )
        )

    assert found == [
        (None, None),
        (3 * 60 + 4, 4096),
        (4 * 60 + 4, 0),
        (0, 0),
        (6 * 60 + 4, 4096),
        (0, 0),
    ]
    names = [one.name for one in metrics.measurements(Metrics("shop")) if "waiting" in one.name]
    assert names == ["lakeload.table.waiting_age", "lakeload.table.waiting"]


def _refused(at: datetime) -> dict[str, Any]:
    return document(at=at, refused=Refused("no bucket"))


def test_job_that_was_refused_counts_as_failure_of_each_of_its_tables() -> None:
    metrics = Metrics("shop")
    metrics.add(document(refused=Refused("no bucket")), ("lake.orders", "lake.items"))

    found = values(metrics.text())
    assert found["job_exit_code",] == 3
    assert found["table_consecutive_failures", "lake.orders"] == 1
    assert found["table_consecutive_failures", "lake.items"] == 1
    assert ("table_last_success_timestamp_seconds", "lake.items") not in found


def test_interrupted_job_is_no_failure_and_no_success() -> None:
    metrics = Metrics("shop")
    stopped = replace(FAILED, status="INTERRUPTED", error=replace(ERROR, exit_code=130))
    metrics.add(document(stopped), TARGETS)

    found = values(metrics.text())
    assert found["jobs_total", "INTERRUPTED"] == 1
    assert found["table_consecutive_failures", "lake.orders"] == 0
    assert ("table_last_success_timestamp_seconds", "lake.orders") not in found


@pytest.mark.parametrize("name", ['o"r', "o\\n", "o\nr", "o,r}", "ö"])
def test_names_come_back_from_the_text_as_they_were(name: str) -> None:
    metrics = Metrics("shop")
    for _ in range(2):
        metrics = Metrics("shop", metrics.text())
        metrics.add(document(replace(LOADED, target=name)), (name,))

    assert values(metrics.text())["table_rows_total", name] == 6


def test_text_of_others_and_damaged_text_is_left_out() -> None:
    text = """x
lakeload_jobs_total{pipeline="other",status="FAILED"} 7
lakeload_jobs_total{pipeline="shop",status="FAILED"} ?
lakeload_job_exit_code{} 1
"""
    metrics = Metrics("shop", text)
    metrics.add(document(LOADED), TARGETS)

    assert "other" not in metrics.text()
    assert values(metrics.text())["jobs_total", "SUCCEEDED"] == 1


def test_file_is_replaced_at_once_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "shop.prom"
    before = os.umask(0o077)
    try:
        Monitor(print).add_metrics(document(LOADED), TARGETS, path)
        first = path.stat().st_ino
        Monitor(print).add_metrics(document(LOADED), TARGETS, path)
    finally:
        os.umask(before)

    assert path.stat().st_ino != first
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["shop.prom"]
    assert values(path.read_text())["jobs_total", "SUCCEEDED"] == 2
    # node_exporter reads the older text format, in which this is valid too.
    names = {family.name for family in parse_text_format(path.read_text())}
    assert "lakeload_table_position_timestamp_seconds" not in names
    assert {"lakeload_jobs_total", "lakeload_job_exit_code"} <= names


def test_file_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    path = tmp_path / "missing" / "shop.prom"
    published: list[str] = []
    monitor = Monitor(warnings.append, published.append)
    for _ in range(2):
        monitor.add_metrics(document(LOADED), TARGETS, path)

    assert warnings == [f"writing the metrics file `{path}`: no such file or directory"] * 2
    assert values(published[-1])["jobs_total", "SUCCEEDED"] == 2


def test_loads_at_once_into_one_file_lose_no_count(tmp_path: Path) -> None:
    path = tmp_path / "shop.prom"
    waiting = threading.Barrier(4)

    def load() -> None:
        waiting.wait(10)
        for _ in range(10):
            Monitor(print).add_metrics(document(LOADED), TARGETS, path)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert values(path.read_text())["jobs_total", "SUCCEEDED"] == 40
    assert [file.name for file in tmp_path.iterdir()] == ["shop.prom"]


def test_lock_that_is_never_released_keeps_no_load_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeload.monitoring.metrics.LOCK_SECONDS", 0.1)
    path = tmp_path / "shop.prom"
    with locked(path):
        Monitor(print).add_metrics(document(LOADED), TARGETS, path)

    assert values(path.read_text())["jobs_total", "SUCCEEDED"] == 1


def test_file_of_another_pipeline_is_left_alone(tmp_path: Path) -> None:
    path, warnings = tmp_path / "Other.prom", list[str]()
    Monitor(print).add_metrics({**document(LOADED), "pipeline": "Other"}, TARGETS, path)
    before = path.read_bytes()
    monitor = Monitor(warnings.append)
    for _ in range(2):
        measured = monitor.add_metrics(document(LOADED), TARGETS, path)

    assert path.read_bytes() == before
    assert (
        warnings
        == [
            f"writing the metrics file `{path}`: it has the metrics of pipeline `Other`: give each "
            "pipeline a file of its own, or remove this one"
        ]
        * 2
    )
    assert {one.attributes["lakeload.pipeline"] for one in measured} == {"shop"}


def test_names_of_metrics_follow_the_conventions() -> None:
    for family in FAMILIES.values():
        assert family.name.startswith("lakeload_")
        assert not family.name.endswith(("_total", "_info", "_created", "_count", "_sum"))
        assert family.unit in ("", "seconds", "bytes")
        assert family.name.endswith(family.unit)
        name, unit = family.measurement
        # As Prometheus translates names of OTLP.
        suffix = {"s": "_seconds", "By": "_bytes"}.get(unit, "")
        assert name.replace(".", "_").removesuffix(suffix) + suffix == family.name
        assert unit in ("s", "By", "") or (unit[0], unit[-1]) == ("{", "}")


def _version() -> str:
    from lakeload_jobs import __version__

    return __version__


def test_page_lists_every_metric() -> None:
    page = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text()
    missing = [one.sample for one in FAMILIES.values() if f"`{one.sample}`" not in page]

    assert missing == []
