"""The run folders of this machine, read whatever lies in them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from lakeload.commands.runs import _running
from lakeload.documents.load import DestinationDocument, PipelineDocument, load_pipeline
from lakeload.formats.tables import TablesRequest
from lakeload.launch import run_folder
from lakeload.launch.run_folder import dead_attempts, matching, past_runs, prune_run_folders
from lakeload.launch.spec import author
from lakeload_jobs.jobs.event_log import EventLog


def write_folder(runs: Path, name: str, *, result: str | None = None, **changes: object) -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    spec = {
        "contract": 1,
        "job_id": f"job-{name}",
        "attempt_id": name,
        "pipeline": "shop",
        "synced": "2026-11-21T10:15:30.000001Z",
        "destination": {"bucket": "lake", "prefix": "a/b"},
        "tables": [{"source": "orders"}, {"source": "visits"}],
        "a_later_key": None,
        **changes,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    if result is not None:
        document = {
            "contract": 1,
            "job_id": spec["job_id"],
            "attempt_id": name,
            "status": result,
            "started_at": "2026-11-21T10:15:30.000000Z",
            "finished_at": "2026-11-21T10:15:42.500000Z",
            "tables": [],
            "error": None,
        }
        (folder / "result.json").write_text(json.dumps(document))
    return folder


def test_runs_come_newest_first_with_their_ends(tmp_path: Path) -> None:
    write_folder(tmp_path, "1", result="SUCCEEDED")
    write_folder(tmp_path, "2", result="FAILED")
    last = write_folder(tmp_path, "3")
    found = past_runs(tmp_path)
    assert [(run.job_id, run.outcome, run.seconds) for run in found] == [
        ("job-3", "NO_RESULT", None),
        ("job-2", "FAILED", 12.5),
        ("job-1", "SUCCEEDED", 12.5),
    ]
    assert found[0].log == last / "spark.log"
    assert found[0].tables == ("orders", "visits")


@pytest.mark.parametrize("job", ["plan", "maintain"])
def test_past_runs_tell_the_end_of_every_job(tmp_path: Path, job: str) -> None:
    folder = write_folder(tmp_path, "1", result="SUCCEEDED", job=job)
    document = json.loads((folder / "result.json").read_text())
    # What only the result of this job has.
    table = {"table": "orders", "target": "shop.orders"}
    document["tables"] = [{**table, **({"columns": {}} if job == "plan" else {"steps": []})}]
    (folder / "result.json").write_text(json.dumps(document))

    assert [run.outcome for run in past_runs(tmp_path)] == ["SUCCEEDED"]


def test_pruning_of_run_folders_that_cannot_be_listed_changes_no_outcome(tmp_path: Path) -> None:
    prune_run_folders(tmp_path / "removed")


def test_past_runs_ignore_other_folders(tmp_path: Path) -> None:
    write_folder(tmp_path, "1")
    write_folder(tmp_path, "2", synced="yesterday")
    (tmp_path / "3").mkdir()
    (tmp_path / "4").write_text("a file")
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "spec.json").write_text("[]")
    write_folder(tmp_path, "6", destination=None)
    assert [run.job_id for run in past_runs(tmp_path)] == ["job-1"]
    assert past_runs(tmp_path / "nowhere") == ()


def test_globs_choose_by_source_table(tmp_path: Path) -> None:
    write_folder(tmp_path, "1")
    write_folder(tmp_path, "2", tables=[{"source": "payments"}])
    found = past_runs(tmp_path)
    assert [run.job_id for run in matching(found, ["pay*"])] == ["job-2"]
    assert matching(found, []) == found


def test_the_author_is_a_user_at_a_host() -> None:
    user, _, host = author().partition("@")
    assert user
    assert host


def test_attempt_with_an_ended_driver_is_abandoned(tmp_path: Path) -> None:
    write_folder(tmp_path, "never-started")
    for name, result in (("in", "SUCCEEDED"), ("failed", "FAILED")):
        EventLog(str(write_folder(tmp_path, name, result=result) / "events.jsonl")).close()
    killed = write_folder(tmp_path, "killed")
    with EventLog(str(killed / "events.jsonl")):
        assert dead_attempts(tmp_path) == ("failed",)
    assert dead_attempts(tmp_path) == ("killed", "failed")
    assert dead_attempts(tmp_path / "nowhere") == ()


def test_results_of_attempts_that_have_succeeded_are_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = run_folder._read

    def noted(folder: run_folder.RunFolder) -> run_folder.LocalRun | None:
        read.append(folder.path.name)
        return whole(folder)

    monkeypatch.setattr(run_folder, "_read", noted)
    for name, result in (("in", "SUCCEEDED"), ("failed", "FAILED")):
        EventLog(str(write_folder(tmp_path, name, result=result) / "events.jsonl")).close()
    damaged = write_folder(tmp_path, "damaged")
    EventLog(str(damaged / "events.jsonl")).close()
    (damaged / "result.json").write_text("{")
    assert dead_attempts(tmp_path) == ("failed", "damaged")
    assert read == ["failed", "damaged"]


def test_a_load_whose_command_was_killed_is_running_while_its_driver_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.yml").write_text(
        "version: 1\nname: shop\n"
        "destination: {version: 1, bucket: lake, region: us-east-1, prefix: a/b}\n"
        "source: {type: FILES, format: CSV}\ntables: [{table: orders, path: x.csv}]\n"
    )
    document = load_pipeline(tmp_path / "pipeline.yml", {})
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(tmp_path / "runs"))
    write_folder(tmp_path / "runs", "starting")
    planned = write_folder(tmp_path / "runs", "planned", job="plan")
    others = write_folder(tmp_path / "runs", "others", pipeline="other")
    ours = write_folder(tmp_path / "runs", "ours")
    elsewhere = {"bucket": "lake", "prefix": "production"}
    store = {"bucket": "lake", "prefix": "a/b", "endpoints": {"s3": "http://127.0.0.1:9000"}}
    staged = write_folder(tmp_path / "runs", "staged", destination=elsewhere)
    stored = write_folder(tmp_path / "runs", "stored", destination=store)

    def running(document: PipelineDocument | DestinationDocument, *globs: str) -> list[str]:
        return [run.job_id for run in _running(TablesRequest("runs", document, globs, print))]

    with contextlib.ExitStack() as drivers:
        for folder in (planned, others, ours, staged, stored):
            drivers.enter_context(EventLog(str(folder / "events.jsonl")))
        assert running(document) == ["job-ours"]
        assert running(document.destination) == ["job-others", "job-ours"][::-1]
        assert running(document, "visits*") == ["job-ours"]
        assert running(document, "nothing*") == []
        outcomes = {run.job_id: run.outcome for run in past_runs(tmp_path / "runs")}
        assert outcomes["job-ours"] == "RUNNING"
        assert outcomes["job-starting"] == "NO_RESULT"
    assert running(document) == []
    assert {run.outcome for run in past_runs(tmp_path / "runs")} == {"NO_RESULT"}


def test_past_runs_result_with_a_status_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, "1", result="SUCCEEDED")
    result = json.loads((folder / "result.json").read_text())
    result["tables"] = [
        {"table": "orders", "target": "shop.orders", "status": "LOADED_CATALOG_STALE"}
    ]
    (folder / "result.json").write_text(json.dumps(result))
    assert [run.outcome for run in past_runs(tmp_path)] == ["SUCCEEDED"]
