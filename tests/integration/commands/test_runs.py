"""`lakeload runs`: the history of tables from their logs, and of this machine from its folders."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

import pytest

from lakeload.formats.parquet.runs import read_history
from lakeload.formats.tables import TableRef
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import Command
from tests.integration.formats.parquet.log.writer import Writer, commit_only
from tests.servers.fault_proxy import FaultProxy

Load = Callable[..., Writer]


def test_runs_list_jobs_newest_first_with_their_tables(command: Command, load: Load) -> None:
    load("monday")
    load("monday", table="visits", files=1)
    load("tuesday")
    ended = command("runs", "pipeline.yml")
    assert ended.code == 0
    heads = [line for line in ended.lines() if not line.startswith(" ")]
    assert [head.split("  ")[1] for head in heads] == ["job tuesday", "job monday"]
    assert "  shop.visits   1 row   1 file  45 B  done" in ended.lines()
    assert max(map(len, ended.lines())) <= 80


def test_runs_show_the_state_of_each_job(
    command: Command, load: Load, admin_objects: Objects, objects: Objects
) -> None:
    load("done")
    broken = commit_only(admin_objects, Writer(admin_objects, "broken", files=3), 2)
    admin_objects.complete_upload(
        broken.files[0].key, broken.files[0].upload_id, broken.files[0].parts
    )
    admin_objects.abort_upload(broken.files[1].key, broken.files[1].upload_id)
    commit_only(objects, Writer(objects, "waiting", table="visits", source="visits"))
    ended = command("runs", "pipeline.yml", "--output", "json")
    assert ended.code == 0
    states = {run["job_id"]: run["state"] for run in ended.document["runs"]}
    assert states == {"done": "done", "broken": "damaged", "waiting": "unfinished"}
    lost = {run["job_id"]: run["lost"] for run in ended.document["runs"]}
    assert lost == {"done": [], "broken": [broken.files[1].key], "waiting": []}
    text = command("runs", "pipeline.yml")
    assert "`lakeload recover pipeline.yml` shows what is lost" in text.err
    assert command("recover", "pipeline.yml", "--void", "broken", "--yes").code == 0
    after = command("runs", "pipeline.yml", "--output", "json").document["runs"]
    assert {run["job_id"]: run["state"] for run in after}["broken"] == "void"


def test_runs_verbose_show_user_and_fences(
    command: Command, load: Load, admin_objects: Objects
) -> None:
    writer = load("monday")
    Writer(admin_objects, "dead").stage()
    assert command("recover", "pipeline.yml", "--abort-older-than", "0").code == 0
    quiet, verbose = command("runs", "pipeline.yml"), command("runs", "pipeline.yml", "-v")
    assert writer.attempt_id not in quiet.out
    assert f"attempt {writer.attempt_id}" in verbose.out
    assert "2 uploads locked out" in verbose.out


def test_runs_with_one_damaged_log_show_the_others(
    command: Command, load: Load, admin_objects: Objects
) -> None:
    load("monday")
    visits = load("monday", table="visits")
    load("tuesday", table="visits")
    entry = admin_objects.find(visits.location.record_key(1))
    assert entry is not None
    admin_objects.delete(entry.key, entry.etag)
    ended = command("runs", "pipeline.yml", "--output", "json")
    assert ended.code == ended.document["exit_code"] == 1
    assert [run["target"] for run in ended.document["runs"]] == ["shop.orders"]
    assert [error["target"] for error in ended.document["errors"]] == ["shop.visits"]
    assert "shop.visits: the log of" in command("runs", "pipeline.yml").err


def test_only_the_newest_records_are_read(
    proxied: Objects, fault_proxy: FaultProxy, load: Load
) -> None:
    old = load("job-old", table="visits", files=0)
    sleep(1.1)  # S3 tells times to the second.
    for number in range(6):
        writer = load(f"job-{number}", files=0)
    tables = [TableRef(w.table, w.location) for w in (old, writer)]
    fault_proxy.requests.clear()
    history = read_history(proxied, tables, 2)
    assert [run.job_id for run in history.runs] == ["job-5", "job-4"]
    # Of each table the checkpoint and a LIST; then records of the newest second alone.
    assert fault_proxy.count("ListObjectsV2") == 2
    assert fault_proxy.count("GetObject", old.location.record_key(1)) == 0


def test_runs_without_a_file_list_runs_of_this_machine(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    ended = command("runs")
    assert (ended.code, ended.out) == (0, "")
    assert "no run folders" in ended.err


def test_runs_without_loads_print_a_note(command: Command) -> None:
    ended = command("runs", "pipeline.yml")
    assert (ended.code, ended.out) == (0, "")
    assert "nothing has been loaded yet" in ended.err
