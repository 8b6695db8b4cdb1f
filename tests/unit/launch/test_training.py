"""A training run that brings no AppCDS archive says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeload.launch.process import Installation
from lakeload.launch.training import check_class_path, train
from lakeload_jobs.contract.errors import MachineNotReady

CHATTER = "[74.056s][warning][cds] Skipping jdk/internal/event/Event: JFR event class"


def installed(root: Path) -> Installation:
    """Where things are below `root`."""
    return Installation(
        spark_home=root / "spark",
        java_home=root / "java",
        python=root / "python",
        package=root / "package.zip",
        entry=root / "run_job.py",
    )


def trained(root: Path, script: str, *, own_archive: bool = True) -> MachineNotReady:
    """Train with a spark-submit that is this script; return its complaint."""
    submit = root / "spark" / "bin" / "spark-submit"
    for path in (submit, root / "java" / "lib" / "server" / "classes.jsa", root / "run" / "x"):
        path.parent.mkdir(parents=True, exist_ok=True)
    if own_archive:
        (root / "java" / "lib" / "server" / "classes.jsa").touch()
    submit.write_text(f"#!/bin/sh\n{script}\n")
    submit.chmod(0o755)
    with pytest.raises(MachineNotReady) as caught:
        train(installed(root), (), {}, root / "run" / "archive.jsa", root / "run")
    return caught.value


def test_training_failure_shows_the_cause_below_java_warnings(tmp_path: Path) -> None:
    script = f"echo 'No space left on device'; echo '{CHATTER}'; exit 1"
    lack = trained(tmp_path, script)
    assert lack.message.endswith("ended with status 1: the disk is full")
    assert "free space" in (lack.hint or "")


@pytest.mark.parametrize("named", [True, False])
def test_training_folder_on_the_class_path_is_rejected(tmp_path: Path, named: bool) -> None:
    conf = tmp_path / "my conf" if named else tmp_path / "spark" / "conf"
    conf.mkdir(parents=True)
    (conf / "spark-defaults.conf").touch()

    with pytest.raises(MachineNotReady, match=re.escape(f"a folder with files (`{conf}`)")):
        check_class_path(installed(tmp_path), {"SPARK_CONF_DIR": str(conf)} if named else {})


def test_training_spark_in_a_folder_with_a_blank_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(MachineNotReady, match=re.escape(f"`{tmp_path}/my disk/spark`")) as caught:
        check_class_path(installed(tmp_path / "my disk"), {})

    assert "SPARK_HOME" in (caught.value.hint or "")


def test_training_without_an_archive_is_an_error(tmp_path: Path) -> None:
    lack = trained(tmp_path, f"echo '{CHATTER}'")
    assert lack.message.endswith("succeeded but wrote no archive")


def test_training_java_without_a_base_archive_gets_a_hint(tmp_path: Path) -> None:
    lack = trained(tmp_path, "exit 1", own_archive=False)
    assert f"the Java in `{tmp_path}/java` has no default archive" in lack.message
    assert f"`{tmp_path}/java/bin/java -Xshare:dump`" in (lack.hint or "")
