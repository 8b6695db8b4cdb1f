"""Scratch folders of a run: where they are, who can read them, and when they go."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.launch.process import Running, spark_defaults, start, submission
from lakeload.launch.properties import LaunchRequest, SparkSettings, spark_properties
from lakeload.launch.run_folder import RunFolder, create_run_folder
from lakeload.launch.scratch import (
    make_scratch,
    remove_abandoned_scratch,
    remove_scratch,
    scratch_folders,
)
from lakeload.launch.stop import StopRequests
from lakeload.runtimes import LOCAL, Submission
from lakeload_jobs.contract.errors import MachineNotReady
from tests.unit.launch.specs import SYNCED
from tests.unit.launch.test_command import INSTALLATION

NAME = "lakeload-20261121T101530Z-a1"
SPILL = """
mkdir "$TMPDIR/blockmgr" && echo rows > "$TMPDIR/blockmgr/shuffle" && echo '{}' > "$RUN/result.json"
stat -c '%a %n' "$TMPDIR" "$TMPDIR/blockmgr" "$TMPDIR/blockmgr/shuffle" "$RUN/result.json"
"""


def started(folder: RunFolder, place: Path, script: str) -> Submission:
    """How to start a shell in place of spark-submit, with a scratch folder in `place`."""
    (path,) = scratch_folders(folder, {"TMPDIR": str(place)}, {})
    variables = {"TMPDIR": str(path), "RUN": str(folder.path)}
    return Submission(LOCAL, ("/bin/sh", "-c", script), variables, (path,))


def test_scratch_folder_of_a_run_is_private_and_removed_after_it(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "runs", SYNCED, "a1")
    place = tmp_path / "temporary"

    with StopRequests() as stop, Running(started(folder, place, SPILL), folder, stop) as running:
        assert list(running.events()) == []
        assert (place / NAME / "blockmgr" / "shuffle").is_file()

    modes = [line.split()[0] for line in folder.log.read_text(encoding="utf-8").splitlines()]
    assert modes == ["700", "700", "600", "600"]
    assert list(place.iterdir()) == []
    assert not folder.scratch.exists()


@pytest.mark.parametrize("command", ["sync", "recover"])
def test_scratch_folder_of_a_killed_run_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    runs, place = tmp_path / "runs", tmp_path / "temporary"
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(runs))
    (tmp_path / "others").mkdir()
    folder = create_run_folder(runs, SYNCED, "a1")
    # The command that started it is gone, as far as this process has kept nothing open.
    process = start(started(folder, place, "exec sleep 60"), folder)
    (place / NAME / "shuffle").write_text("rows")

    def later() -> None:
        if command == "sync":
            remove_abandoned_scratch(runs)
        else:
            # Whatever it says of the file: it is about this machine.
            CliRunner().invoke(app, ["recover", str(tmp_path / "missing.yml")])

    later()
    assert (place / NAME / "shuffle").exists(), "the run is alive"
    process.kill()
    process.wait()
    later()
    assert list(place.iterdir()) == []
    assert not folder.scratch.exists()


def test_no_other_folder_than_a_scratch_folder_of_the_run_is_removed(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "runs", SYNCED, "a1")
    own, other = tmp_path / NAME, tmp_path / "documents"
    for path in (own, other):
        path.mkdir()
    folder.scratch.write_text(json.dumps([str(own), str(other), str(folder.path)]))

    remove_scratch(folder)

    assert (own.exists(), other.exists(), folder.path.exists()) == (False, True, True)
    folder.scratch.write_text("[1]")
    remove_scratch(folder)


def test_scratch_folder_that_cannot_be_made_names_the_variables(tmp_path: Path) -> None:
    folder = create_run_folder(tmp_path / "runs", SYNCED, "a1")
    (tmp_path / "file").touch()
    with pytest.raises(MachineNotReady) as lack:
        make_scratch(folder, scratch_folders(folder, {"TMPDIR": str(tmp_path / "file")}, {}))
    assert f"`{tmp_path}/file/{NAME}`" in lack.value.message
    assert "TMPDIR" in (lack.value.hint or "")


@pytest.mark.parametrize(
    ("environment", "conf", "places"),
    [
        ({}, {}, ["/tmp"]),
        ({"TMPDIR": "/t"}, {}, ["/t"]),
        ({"TMPDIR": "/t", "JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/j"}, {}, ["/j"]),
        ({"TMPDIR": "/t"}, {"spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/k"}, ["/k"]),
        ({"TMPDIR": "/t"}, {"spark.local.dir": "/a, /b"}, ["/a", "/b"]),
        ({"TMPDIR": "/t", "SPARK_LOCAL_DIRS": "/c"}, {"spark.local.dir": "/a"}, ["/c"]),
    ],
)
def test_scratch_folders_lie_where_spark_is_told_to_spill(
    environment: dict[str, str], conf: dict[str, str], places: list[str]
) -> None:
    folder = RunFolder(Path("/runs/r1"))
    found = scratch_folders(folder, environment, conf)
    assert found == tuple(Path(place, "lakeload-r1") for place in places)


def test_scratch_folders_reach_spark_java_and_python(tmp_path: Path) -> None:
    folder = RunFolder(Path("/runs/r1"))
    scratch = (Path("/my disk/lakeload-r1"), Path("/b/lakeload-r1"))
    settings = SparkSettings("local[2]", "1g", {"spark.local.dir": "/my disk,/b"})
    properties = spark_properties(LaunchRequest(settings, folder, scratch=scratch))
    assert properties["spark.local.dir"] == "/my disk/lakeload-r1,/b/lakeload-r1"
    for role in ("driver", "executor"):
        options = properties[f"spark.{role}.extraJavaOptions"]
        assert '"-Djava.io.tmpdir=/my disk/lakeload-r1"' in options

    own = {"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/own"}
    properties = spark_properties(LaunchRequest(settings, folder, own, scratch=scratch))
    assert "java.io.tmpdir" not in json.dumps(properties)
    remote = dataclasses.replace(settings, master="spark://a:7077")
    properties = spark_properties(LaunchRequest(remote, folder, scratch=scratch))
    assert "java.io.tmpdir" not in properties["spark.executor.extraJavaOptions"]

    made = submission(
        INSTALLATION,
        folder,
        master="local",
        pipeline="p",
        environment={"SPARK_LOCAL_DIRS": "/elsewhere"},
        scratch=scratch,
    )
    assert made.environment["TMPDIR"] == "/my disk/lakeload-r1"
    assert "SPARK_LOCAL_DIRS" not in made.environment


def test_spark_defaults_of_a_spark_the_user_chose_name_the_scratch_place(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("# x\n\nspark.local.dir   /big disk\n")
    chosen = dataclasses.replace(INSTALLATION, spark_home=tmp_path, load_spark_defaults=True)
    assert spark_defaults(chosen, {})["spark.local.dir"] == "/big disk"
    assert spark_defaults(chosen, {"SPARK_CONF_DIR": str(tmp_path / "none")}) == {}
    assert spark_defaults(dataclasses.replace(chosen, load_spark_defaults=False), {}) == {}
