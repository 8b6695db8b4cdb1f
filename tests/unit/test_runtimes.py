"""Which runtime a master belongs to, and what the job is told of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakeload.documents.spark import master_finding
from lakeload.runtimes import (
    LOCAL,
    LOCAL_CLUSTER,
    RUNTIMES,
    STANDALONE,
    Runtime,
    Submission,
    find_runtime,
    runtime_of,
)


@pytest.mark.parametrize(
    ("master", "runtime"),
    [
        ("local", LOCAL),
        ("local[*]", LOCAL),
        ("local[4]", LOCAL),
        ("local[4,2]", LOCAL),
        ("local-cluster[2,1,1024]", LOCAL_CLUSTER),
        ("spark://a:7077", STANDALONE),
        ("spark://a:7077,b:7077", STANDALONE),
    ],
)
def test_a_master_belongs_to_just_one_runtime(master: str, runtime: object) -> None:
    assert [one for one in RUNTIMES if one.accepts(master)] == [runtime]
    assert runtime_of(master) is runtime
    assert master_finding(master) is None


@pytest.mark.parametrize(
    ("master", "code"),
    [
        ("local[0]", "invalid"),
        ("local[x]", "invalid"),
        ("local[", "invalid"),
        ("localhost", "invalid"),
        ("local-cluster[2]", "invalid"),
        ("spark://a", "invalid"),
        ("yarn", "not-supported-yet"),
        ("k8s://https://host", "not-supported-yet"),
        ("", "not-supported-yet"),
    ],
)
def test_unknown_master_is_rejected_with_the_supported_ones(master: str, code: str) -> None:
    finding = master_finding(master)

    assert find_runtime(master) is None
    assert finding is not None
    assert finding.code == code
    assert finding.hint == "`local[N]`, `local-cluster[…]` and `spark://HOST:PORT` are"


def test_runtime_tasks_are_remote_only_on_a_cluster() -> None:
    shared = {runtime.written: runtime.traits.tasks_share_driver for runtime in RUNTIMES}

    assert shared == {"local[N]": True, "local-cluster[…]": True, "spark://HOST:PORT": False}


@pytest.mark.parametrize(
    ("master", "retried"),
    [
        ("local", False),
        ("local[2]", False),
        ("local[2,1]", False),
        ("local[*,3]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://host:7077", True),
    ],
)
def test_a_master_says_whether_failed_tasks_run_again(master: str, retried: bool) -> None:
    assert runtime_of(master).traits_of(master).tasks_retried is retried


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[3,4]", 3),
        ("local[*]", 8),
        ("local[*,2]", 8),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
    ],
)
def test_a_local_master_names_its_task_slots(master: str, slots: int | None) -> None:
    assert runtime_of(master).task_slots(master, 8) == slots


def test_the_driver_of_a_local_master_alone_is_on_the_loopback_unless_the_user_says_where() -> None:
    chosen = {"spark.driver.host": "10.0.0.1"}

    assert LOCAL.properties((), {})["spark.driver.host"] == "127.0.0.1"
    assert LOCAL.properties((), chosen)["spark.driver.host"] == "10.0.0.1"
    for runtime in (LOCAL_CLUSTER, STANDALONE):
        assert "spark.driver.host" not in runtime.properties((), {})


def test_ports_of_spark_on_this_machine_ask_for_a_secret_of_the_run() -> None:
    # Spark draws the secret of a local master itself.
    assert LOCAL.properties((), {})["spark.authenticate"] == "true"
    first, second = LOCAL_CLUSTER.properties((), {}), LOCAL_CLUSTER.properties((), {})
    assert first["spark.authenticate"] == "true"
    assert len(first["spark.authenticate.secret"]) == 64
    assert first["spark.authenticate.secret"] != second["spark.authenticate.secret"]
    off = {"spark.authenticate": "false"}
    assert LOCAL.properties((), off)["spark.authenticate"] == "false"
    assert LOCAL_CLUSTER.properties((), off) == off
    # The secret of a cluster is in its own configuration.
    assert STANDALONE.properties((), {}) == {}


def test_runtime_sends_jars_to_remote_executors() -> None:
    jars = [Path("/c/a.jar")]

    assert STANDALONE.properties(jars, {"spark.jars": "/b.jar"}) == {
        "spark.jars": "file:///c/a.jar,/b.jar"
    }
    found = LOCAL_CLUSTER.properties(jars, {})
    assert found["spark.driver.extraClassPath"] == "/c/a.jar"
    assert found["spark.executor.extraClassPath"] == "/c/a.jar"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_starts_a_job_in_a_session_of_its_own(runtime: Runtime, tmp_path: Path) -> None:
    code = "import os, sys; print(os.getsid(0) == os.getpid(), os.environ['WHO']); sys.exit(7)"
    command = Submission(runtime, (sys.executable, "-c", code), {"WHO": runtime.written})
    with (tmp_path / "log").open("wb") as log:
        assert runtime.start(command, log.fileno()).wait(60) == 7
    assert (tmp_path / "log").read_text() == f"True {runtime.written}\n"
