"""What users install: the wheel, opened, and the files around it."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "cli", ROOT / "sparkjobs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    built = subprocess.run(
        [*command, "--outdir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def metadata_file(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = [path for path in wheel.namelist() if path.endswith(f".dist-info/{name}")]
    return wheel.read(path).decode()


def test_the_wheel_holds_exactly_the_two_packages(wheel: zipfile.ZipFile) -> None:
    names = {path.partition("/")[0] for path in wheel.namelist()}
    packages = {name for name in names if not name.endswith(".dist-info")}
    assert packages == {"lakeload", "lakeload_jobs"}
    assert len(names) == 3


def test_every_file_of_the_packages_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    """Data files too: templates, schemas and log settings are easily left out of a build."""
    expected = {
        path.relative_to(root).as_posix()
        for root in SOURCES
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert expected
    assert {path for path in wheel.namelist() if ".dist-info/" not in path} == expected


def test_the_wheel_installs_the_command(wheel: zipfile.ZipFile) -> None:
    entry_points = configparser.ConfigParser()
    entry_points.read_string(metadata_file(wheel, "entry_points.txt"))
    assert dict(entry_points["console_scripts"]) == {"lakeload": "lakeload.__main__:main"}


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    assert "License-Expression: Apache-2.0" in metadata_file(wheel, "METADATA")
    assert metadata_file(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_the_compose_file_keeps_to_the_specification() -> None:
    schema = ["--builtin-schema", "vendor.compose-spec"]
    command = [sys.executable, "-m", "check_jsonschema", *schema, str(ROOT / "docker-compose.yml")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_compose_publishes_healthy_pinned_services_on_loopback_alone() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert set(compose["services"]) == {"ministack", "localstack"}
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["healthcheck"]["test"]
        assert "container_name" not in service
        assert service["image"].rpartition(":")[2] not in {"", "latest"}


def test_compose_and_make_agree_on_the_endpoints() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    makefile = (ROOT / "Makefile").read_text()
    for name, variable in (
        ("ministack", "LAKELOAD_TEST_AWS_ENDPOINT"),
        ("localstack", "LAKELOAD_TEST_LOCALSTACK_ENDPOINT"),
    ):
        (port,) = compose["services"][name]["ports"]
        published = port.removesuffix(":4566")
        assert f"{variable}=http://{published} " in makefile


def test_compose_runs_the_ministack_that_the_demo_embeds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    _, _, tag = compose["services"]["ministack"]["image"].partition(":")
    assert f"ministack=={tag}" in project["optional-dependencies"]["demo"]
