"""What metrics, traces, OpenLineage, the job history, `status` and `notify` say of each way that a
job can end, compared with the lake.

One pipeline goes through all of them: `orders` fails on a bad value, `items` sets it aside.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.e2e.command import lakeload
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of
from tests.faults.product.syncs import Sync, Told, run_untroubled
from tests.faults.product.world import World
from tests.faults.rounds.lake import RoundsLake
from tests.open_metrics import samples
from tests.openlineage_schema import check
from tests.servers.fault_proxy import FaultProxy, answer, before
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import Gate, iceberg_in
from tests.servers.report_receiver import ReportReceiver, receiving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TABLES = ("orders", "items")
HOOK = "/hook"
COUNTED = {"rows": "rows", "files": "files", "bytes": "bytes", "rejected": "rejected_records"}


@dataclass(frozen=True)
class State:
    """One job: the files that arrive before it, and what becomes of it and of each table."""

    name: str
    job: str
    files: dict[str, str] = field(default_factory=dict)
    code: int | None = 0
    """None: it is killed."""
    tables: tuple[str, ...] = ()
    """The status of `orders` and of `items`; of a job that was rejected there is none."""
    killed_at: Literal["", "before", "after"] = ""
    """Killed before it commits, or after that and before it learns of it."""
    denied: bool = False
    events: tuple[str, ...] = ()
    """The ends of the runs of the pipeline, `orders` and `items`."""
    failures: tuple[int, int, int] = (0, 0, 0)
    """Failures in a row of the pipeline, `orders` and `items` after it."""
    message: tuple[str, ...] = ()
    """The events of the one message about it; () for none."""
    counts: bool = True
    """Whether the job reports the rows that it has left in the lake."""


STATES = (
    State(
        "good", "j1", {"orders/1": "1 2 3", "items/1": "1"},
        tables=("LOADED", "LOADED"), events=("COMPLETE", "COMPLETE", "COMPLETE"),
    ),
    State("idle", "j2", tables=("NO_OP", "NO_OP"), events=("COMPLETE", "COMPLETE", "COMPLETE")),
    State(
        "partial", "j3", {"orders/2": "bad", "items/2": "2 3"}, 1,
        tables=("FAILED", "LOADED"), events=("FAIL", "FAIL", "COMPLETE"), failures=(1, 1, 0),
        message=("PARTIAL",),
    ),
    State(
        "failed", "j4", code=3, denied=True, events=("FAIL",), failures=(2, 2, 1),
        message=("FAILED",),
    ),
    State(
        "rejected", "j5", {"orders/2": "", "items/3": "4 bad"},
        tables=("NO_OP", "LOADED"), events=("COMPLETE", "COMPLETE", "COMPLETE"),
        message=("RECOVERED", "REJECTED"),
    ),
    State("killed", "j6", {"orders/3": "4 5"}, None, killed_at="before"),
    State(
        "recovered", "j6", {"items/4": "5"},
        tables=("LOADED", "LOADED"), events=("COMPLETE", "COMPLETE", "COMPLETE"),
    ),
    State("killed after the commit", "j7", {"orders/4": "6"}, None, killed_at="after"),
    State(
        "recovered after the commit", "j7",
        tables=("NO_OP", "NO_OP"), events=("COMPLETE", "COMPLETE", "COMPLETE"), counts=False,
    ),
)  # fmt: skip


@dataclass
class Pipeline:
    """The pipeline, and what was known of it after the job before."""

    world: World
    lake: RoundsLake
    receiver: ReportReceiver
    folder: Path
    spark_home: Path
    stored: Counter[tuple[str, str]] = field(default_factory=Counter)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    values: dict[tuple[str, ...], float] = field(default_factory=dict)

    def write(self) -> None:
        """Write the documents."""
        table = {"columns": {"types": {"n": "bigint"}}}
        self.world.lake.write_pipeline(
            self.folder,
            endpoint=self.world.proxy.endpoint,
            tables=[
                {"table": "orders", "path": "orders/*.csv", **table, "on_bad_value": "FAIL"},
                {"table": "items", "path": "items/*.csv", **table, "max_rejected": "100 %"},
            ],
            source={
                "type": "FILES",
                "format": "CSV",
                "options": {"header": True},
                "incremental": True,
            },
            destination=iceberg_in(self.lake.gate) if self.lake.gate else {},
            destination_prefix=None,
            namespace="shop",
            on_bad_value="QUARANTINE",
            lineage={"url": self.receiver.url},
            opentelemetry=True,
            metrics_file="shop.prom",
            notify={
                "url": {"env": "HOOK"},
                "on": ["FAILED", "PARTIAL", "RECOVERED", "REJECTED"],
            },
        )
        for name in TABLES:
            (self.folder / name).mkdir()

    def run(self, state: State) -> Told:
        """Let files arrive and run the job."""
        for name, numbers in state.files.items():
            path = self.folder / f"{name}.csv"
            path.write_text("\n".join(["n", *numbers.split(), ""]) if numbers else "")
            if not numbers:
                path.unlink()
        self.receiver.requests.clear()
        if state.killed_at:
            return self._killed(state)
        rule = None
        if state.denied:
            rule = self.world.proxy.on("AssumeRole", answer(403, "AccessDenied"))
        told = run_untroubled(self.world, self.folder, state.job)
        if rule is not None:
            self.world.proxy.rules.remove(rule)
        return told

    def _killed(self, state: State) -> Told:
        reached, gone = threading.Event(), threading.Event()

        def hold(_: Any) -> None:
            reached.set()
            gone.wait(60)
            raise ConnectionError("the client was killed")

        release = self._hold(state.killed_at, hold)
        sync = Sync(self.world, self.folder, state.job, spark_home=self.spark_home)
        while not reached.wait(0.1):
            assert sync.running, sync.end()
        sync.kill()
        gone.set()
        release()
        return sync.end()

    def _hold(self, at: str, hold: Callable[[Any], None]) -> Callable[[], None]:
        """Call `hold` where a job is to be killed, and return what ends that."""
        gate = self.lake.gate
        if gate is None:
            # Uploads are completed after the commit of a Parquet table.
            operation = "UploadPart" if at == "before" else "CompleteMultipartUpload"
            rule = self.world.proxy.on(operation, before(hold), times=1)
            return lambda: self.world.proxy.rules.remove(rule)

        def on_commit(moment: str) -> None:
            if moment == at:
                hold(None)

        def release() -> None:
            gate.on_commit = None

        gate.on_commit = on_commit
        return release

    def grown(self) -> Counter[tuple[str, str]]:
        """Return what the lake has more of since the last call: rows, files and bytes of each
        table, and rows of its side table."""
        found: Counter[tuple[str, str]] = Counter()
        keys = self.world.lake.data_keys()
        for name in TABLES:
            sizes = self.lake.file_sizes(name)
            side = any(f"/{name}_rejected/" in key for key in keys)
            found["rows", name] = len(self.lake.rows(name, "n")) if sizes else 0
            found["files", name] = len(sizes)
            found["bytes", name] = sum(sizes)
            rejected = self.lake.rows(f"{name}_rejected", "_supa_index") if side else []
            found["rejected", name] = len(rejected)
        new = Counter({key: found[key] - self.stored[key] for key in found})
        self.stored = found
        return new

    @property
    def lineage(self) -> list[dict[str, Any]]:
        """The events of OpenLineage about the last job."""
        return [one.event for one in self.receiver.requests if one.path.startswith("/api/")]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of `notify` about the last job."""
        return [one.event for one in self.receiver.requests if one.path == HOOK]

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Return the values of the metrics file, by name and labels."""
        return {
            (one.name.removeprefix("lakeload_"), *list(one.labels.values())[1:]): one.value
            for one in samples((self.folder / "shop.prom").read_text())
        }


@pytest.fixture(params=["parquet", "iceberg"])
def pipeline(
    request: pytest.FixtureRequest,
    lake: Lake,
    fault_proxy: FaultProxy,
    tmp_path: Path,
    warm_spark_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Pipeline]:
    """A pipeline of Parquet files, or of Iceberg tables in a REST catalog."""
    folder = tmp_path / "run"
    folder.mkdir()
    world = World(lake, fault_proxy, tmp_path, "states", warm_spark=warm_spark_home)
    iceberg = request.param == "iceberg"
    opened: Any = gate_of(lake) if iceberg else nullcontext()
    gate: Gate | None
    with opened as gate, receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("HOOK", f"{receiver.url}{HOOK}")
        monkeypatch.setenv("CREDENTIAL", f"loader-id:{CLIENT_SECRET}")
        found = RoundsLake(lake, fault_proxy, gate)
        pipeline = Pipeline(world, found, receiver, folder, warm_spark_home)
        pipeline.write()
        yield pipeline
        # The clients that were killed have lost their requests.
        fault_proxy.errors.clear()


def test_what_is_reported_of_each_end_of_a_job_is_right(pipeline: Pipeline) -> None:
    ended: list[tuple[State, Told, Counter[tuple[str, str]]]] = []
    for state in STATES:
        told = pipeline.run(state)
        assert told.code == state.code, (state.name, told)
        new = pipeline.grown()
        messages = [tuple(one["events"]) for one in pipeline.messages]
        wanted = [state.message] if state.message else []
        assert messages == wanted, (state.name, told.stderr)
        if state.code is None:
            _check_killed(pipeline, state)
            continue
        assert [told.tables[name]["status"] for name in TABLES if told.tables] == [*state.tables]
        reported = new if state.counts else Counter[tuple[str, str]]()
        _check_metrics(pipeline, state, reported)
        _check_otlp(pipeline, state, told, reported)
        _check_events(pipeline, state, told, reported)
        _check_messages(pipeline, told, reported)
        ended.append((state, told, reported))
        if not state.denied:
            # What the lake was not told goes along with the next job.
            _check_history(pipeline, ended)
            _check_status(pipeline, state)


def _check_messages(pipeline: Pipeline, told: Told, new: Counter[tuple[str, str]]) -> None:
    for message in pipeline.messages:
        assert (message["job_id"], message["exit_code"]) == (told.job_id, told.code)
        for table in message["tables"]:
            name = table["target"].removeprefix("shop.")
            counted = (table["rows"], table["rejected"])
            assert counted == (new["rows", name], new["rejected", name]), message


def _check_history(
    pipeline: Pipeline, ended: Sequence[tuple[State, Told, Counter[tuple[str, str]]]]
) -> None:
    """The history has each job that has ended, in order, and none that was killed."""
    lake = pipeline.world.lake
    (key,) = [key for key in lake.keys() if "/job-history/" in key]  # noqa: SIM118
    jobs = json.loads(lake.read(key))["jobs"]
    idle = [state.name for state, _, _ in ended if {*state.tables} == {"NO_OP"}]
    kept = [one for one in ended if one[0].name not in idle]
    assert [(job["job_id"], job["exit_code"]) for job in jobs] == [
        (told.job_id, told.code) for _, told, _ in kept
    ]
    for job, (state, _, new) in zip(jobs, kept, strict=True):
        if not state.tables:
            continue
        tables = {one["target"].removeprefix("shop."): one for one in job["tables"]}
        news = dict(zip(TABLES, state.tables, strict=True))
        assert {name: one["status"] for name, one in tables.items()} == {
            name: status for name, status in news.items() if status != "NO_OP"
        }, state.name
        for name, table in tables.items():
            counted = [table[what] for what in ("rows", "bytes", "rejected")]
            wanted = [new[what, name] for what in ("rows", "bytes", "rejected")]
            assert counted == wanted, (state.name, name)


def _check_status(pipeline: Pipeline, state: State) -> None:
    shown = lakeload(
        pipeline.world.lake, pipeline.folder, "status", "pipeline.yml", "--output", "json"
    )
    found = shown.document
    tables = {one["target"].removeprefix("shop."): one for one in found["tables"]}
    of_job, *of_tables = state.failures
    assert shown.code == (1 if any(of_tables) else 0)
    assert found["job"]["failures"] == of_job
    for name, failures in zip(TABLES, of_tables, strict=True):
        table = tables[name]
        assert table["status"] == ("FAILED" if failures else "FRESH"), state.name
        assert table["last"]["failures"] == failures
        newest = max((pipeline.folder / name).iterdir(), key=lambda one: one.stat().st_mtime)
        position = datetime.fromisoformat(table["last"]["position"]).timestamp()
        assert position <= newest.stat().st_mtime + 0.001
        if not failures:
            assert position == pytest.approx(newest.stat().st_mtime, abs=0.001)


def _check_killed(pipeline: Pipeline, state: State) -> None:
    """A job that was killed has begun, for OpenLineage, and for nobody ended."""
    assert pipeline.metrics() == pipeline.values, state.name
    assert [one.path for one in pipeline.receiver.requests if one.path.startswith("/v1/")] == []
    assert {event["eventType"] for event in pipeline.lineage} <= {"START"}
    for event in pipeline.lineage:
        check(event)


def _check_metrics(pipeline: Pipeline, state: State, new: Counter[tuple[str, str]]) -> None:
    old, values = pipeline.values, pipeline.metrics()
    pipeline.values = values
    status = {0: "SUCCEEDED"}.get(state.code or 0, "FAILED")
    assert values["jobs_total", status] == old.get(("jobs_total", status), 0) + 1
    assert values["job_exit_code",] == state.code
    of_job, *of_tables = state.failures
    assert values["job_consecutive_failures",] == of_job, state.name
    assert values["job_cpu_seconds_total",] > old.get(("job_cpu_seconds_total",), 0)
    succeeded = ("job_last_success_timestamp_seconds",)
    assert (values[succeeded] > old.get(succeeded, 0)) is (state.code == 0)
    for name, failures in zip(TABLES, of_tables, strict=True):
        table = f"shop.{name}"
        for what, counter in COUNTED.items():
            key = (f"table_{counter}_total", table)
            assert values.get(key, 0) - old.get(key, 0) == new[what, name], (state.name, key)
        assert values["table_consecutive_failures", table] == failures, (state.name, name)
        loaded = ("table_last_success_timestamp_seconds", table)
        assert (values[loaded] > old.get(loaded, 0)) is (failures == 0), (state.name, name)
        newest = max((pipeline.folder / name).iterdir(), key=lambda one: one.stat().st_mtime)
        position = values["table_position_timestamp_seconds", table]
        if failures == 0:
            assert position == pytest.approx(newest.stat().st_mtime, abs=0.001)
        end = values["job_last_end_timestamp_seconds",]
        assert values["table_lag_seconds", table] == pytest.approx(end - position, abs=0.001)


def _check_otlp(
    pipeline: Pipeline, state: State, told: Told, new: Counter[tuple[str, str]]
) -> None:
    gauges = pipeline.receiver.gauges
    of_job, *of_tables = state.failures
    assert gauges["lakeload.job.exit_code", ""] == state.code
    assert gauges["lakeload.job.consecutive_failures", ""] == of_job
    assert gauges["lakeload.job.cpu", ""] > 0
    requests = sum(value for (name, _), value in gauges.items() if name == "lakeload.job.requests")
    assert requests == sum(told.document["usage"]["requests"].values())
    assert requests > 0
    for name, failures in zip(TABLES, of_tables, strict=True):
        table = f"lakeload.table=shop.{name}"
        assert gauges["lakeload.table.consecutive_failures", table] == failures
        assert gauges["lakeload.table.lag", table] >= 0
        for what, gauge in COUNTED.items():
            value = gauges.get((f"lakeload.table.{gauge}", table), 0)
            assert value == new[what, name], (state.name, name, what)
    spans = {span.name: span for span in pipeline.receiver.spans}
    assert len({span.trace_id for span in spans.values()}) == 1
    root = spans["sync shop"]
    assert root.status.code == (2 if state.code else 0)
    phases = [phase["name"] for phase in told.document["timings"]["phases"]]
    below = [span.name for span in spans.values() if span.parent_span_id == root.span_id]
    assert below == phases


def _check_events(
    pipeline: Pipeline, state: State, told: Told, new: Counter[tuple[str, str]]
) -> None:
    events = pipeline.lineage
    for event in events:
        check(event)
    ends = {one["job"]["name"]: one for one in events if one["eventType"] != "START"}
    names = ("shop", "shop.shop.orders", "shop.shop.items")[: len(state.events)]
    assert {name: ends[name]["eventType"] for name in ends} == dict(
        zip(names, state.events, strict=True)
    )
    starts = {one["run"]["runId"] for one in events if one["eventType"] == "START"}
    assert starts == {one["run"]["runId"] for one in ends.values()}
    assert ("errorMessage" in ends["shop"]["run"]["facets"]) is bool(state.code)
    for name in TABLES:
        if (end := ends.get(f"shop.shop.{name}")) is None:
            continue
        error = told.tables[name]["error"]
        message = end["run"]["facets"].get("errorMessage", {}).get("message")
        assert message == (error and error["message"])
        (read,) = end["inputs"]
        assert (read["namespace"], read["name"]) == ("file", str(pipeline.folder / name))
        if end["eventType"] != "COMPLETE":
            continue
        (output,) = end["outputs"]
        statistics = output["outputFacets"]["outputStatistics"]
        counted = [statistics[key] for key in ("rowCount", "fileCount", "size")]
        assert counted == [new[what, name] for what in ("rows", "files", "bytes")], state.name
        if told.tables[name]["status"] == "LOADED":
            lineage = output["facets"]["columnLineage"]["fields"]["n"]["inputFields"]
            assert [(one["name"], one["field"]) for one in lineage] == [(read["name"], "n")]
            types = {one["name"]: one["type"] for one in output["facets"]["schema"]["fields"]}
            assert types["n"] == "bigint"
