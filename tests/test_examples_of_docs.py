"""Examples on the pages: configuration files are valid, schedules and manifests are well-formed."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from lakeload.config.problems import has_errors
from lakeload.documents.destination import Destination
from lakeload.documents.load import inspect_all
from lakeload.documents.pipeline import Pipeline
from tests.pages import command

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SCHEDULING = (DOCS / "scheduling.md").read_text(encoding="utf-8")
CONTINUOUS = (DOCS / "run-continuously.md").read_text(encoding="utf-8")
KUBERNETES = json.loads((ROOT / "tests/cases/kubernetes.json").read_bytes())
DIRECTIVES = {
    "Unit": {"Description", "Wants", "After"},
    "Service": {
        *("Type", "NotifyAccess", "User", "EnvironmentFile", "ExecStart", "ExecReload"),
        *(
            "TimeoutStartSec",
            "WatchdogSec",
            "TimeoutStopSec",
            "Restart",
            "RestartPreventExitStatus",
        ),
    },
    "Install": {"WantedBy"},
}
"""Sections and directives of systemd that the page of rounds uses (systemd.service(5))."""
DESTINATION = {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"}
PIPELINE = {
    "version": 1,
    "name": "shop",
    "destination": "destination.yml",
    "destination_prefix": "shop",
    "source": {"type": "FILES", "format": "CSV"},
    "tables": [{"table": "orders", "path": "data/orders.csv"}],
}
SOURCES = (
    PIPELINE["source"],
    {"type": "JDBC", "url": "postgresql://db.example.com/shop", "password": {"env": "SHOP"}},
)


def blocks(text: str, language: str) -> list[str]:
    """Return the content of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each YAML mapping of the pages that is a configuration file or a part of one."""
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        for number, block in enumerate(blocks(page.read_text(encoding="utf-8"), "yaml"), 1):
            if not re.search(r"^# yaml|…|^(apiVersion|services|on:|- )", block, re.MULTILINE):
                for place, part in enumerate(block.split("\n---\n"), 1):
                    yield f"{page.stem}-{number}-{place}", yaml.safe_load(part)


KINDS = {"destination": set(Destination.model_fields), "pipeline": set(Pipeline.model_fields)}
EXAMPLES = list(documents())


@pytest.mark.parametrize("example", dict(EXAMPLES).values(), ids=dict(EXAMPLES).keys())
def test_a_configuration_on_a_page_is_valid(example: dict[str, Any], tmp_path: Path) -> None:
    if set(example) == {"options"}:  # a part of a source of files
        example = {"source": {"type": "FILES", "format": "CSV", **example}}
    kinds = [kind for kind, keys in KINDS.items() if set(example) <= keys]
    assert kinds, f"neither a destination nor a pipeline has {sorted(example)}"
    iceberg = {"table_format": "ICEBERG", "glue_database_prefix": "lake"}
    problems = []
    # A part of a pipeline does not show its source, and a pipeline not its destination.
    for destination, source in product((DESTINATION, {**DESTINATION, **iceberg}), SOURCES):
        whole = {"destination": destination, "pipeline": {**PIPELINE, "source": source}}
        whole[kinds[0]] = {**whole[kinds[0]], **example}
        for kind, content in whole.items():
            text = yaml.safe_dump(content, sort_keys=False)
            (tmp_path / f"{kind}.yml").write_text(text, encoding="utf-8")
        # The page of environments names its destinations by a variable.
        (tmp_path / "destinations").mkdir(exist_ok=True)
        shutil.copy(tmp_path / "destination.yml", tmp_path / "destinations/dev.yml")
        files = [tmp_path / f"{kind}.yml" for kind in ("destination", "pipeline")]
        found = [problem for one in inspect_all(files, {}) for problem in one.problems]
        if not has_errors(found):
            return
        problems.append([problem for problem in found if problem.severity == "error"])
    pytest.fail(str(problems))


def lakeload_commands() -> list[list[str]]:
    """Return the words behind `lakeload` of each command of the page of schedulers."""
    found = []
    for block in re.findall(r"^```\w+\n(.*?)^```$", SCHEDULING, re.MULTILINE | re.DOTALL):
        for line in re.findall(r"\blakeload (sync [^\n]*)", block):
            plain = re.sub(r"\$\(.*?\)", "", re.split(r" (?:2?>>)", line.rstrip('"'))[0])
            found.append(shlex.split(plain))
        for words in re.findall(r'\["lakeload", (.*?)\]', block):
            found.append([word.strip(' "') for word in words.split(",")])
    return found


def test_commands_of_schedules_exist_with_their_options() -> None:
    found = lakeload_commands()
    assert len(found) == 5
    for name, *words in found:
        spellings = {one for p in command(name).params for one in (*p.opts, *p.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= spellings, words


@pytest.mark.parametrize("code", blocks(SCHEDULING, "python"), ids=["airflow", "dagster"])
def test_the_python_of_a_schedule_compiles(code: str) -> None:
    compile(code, "<docs/scheduling.md>", "exec")


def test_the_crontab_has_five_fields_and_no_bare_percent_sign() -> None:
    [crontab] = blocks(SCHEDULING, "crontab")
    [line] = [line for line in crontab.splitlines() if not line.startswith("#")]
    *fields, rest = line.split(None, 5)
    assert [field for field in fields if not re.fullmatch(r"[\d*/,-]+", field)] == []
    assert re.findall(r"(?<!\\)%", rest) == []


def test_the_units_of_systemd_are_accepted(tmp_path: Path) -> None:
    service, timer = blocks(SCHEDULING, "ini")
    for name, text in (("lakeload-shop.service", service), ("lakeload-shop.timer", timer)):
        parser = configparser.ConfigParser(strict=True, interpolation=None)
        parser.read_string(text)
        assert "Unit" in parser
        # The program and the user are those of this machine.
        here = text.replace("/opt/lakeload/bin/lakeload", shutil.which("true") or "/bin/true")
        (tmp_path / name).write_text(here.replace("User=lakeload", "User=root"))
    if analyze := shutil.which("systemd-analyze"):
        units = [str(path) for path in sorted(tmp_path.iterdir())]
        checked = subprocess.run(
            [analyze, "verify", *units], capture_output=True, text=True, check=False
        )
        assert not [line for line in checked.stderr.splitlines() if "lakeload-shop" in line]


def complaints(folder: Path, name: str, text: str) -> list[str]:
    """Return what systemd says of a unit; nothing where it is not installed."""
    # The program and the user are those of this machine.
    here = text.replace("/opt/lakeload/bin/lakeload", shutil.which("true") or "/bin/true")
    (folder / name).write_text(here.replace("User=lakeload", "User=root"))
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return []
    checked = subprocess.run(
        [analyze, "verify", str(folder / name)], capture_output=True, text=True, check=False
    )
    return [line for line in checked.stderr.splitlines() if name in line]


def options_exist(name: str, words: list[str]) -> bool:
    """Return whether a command has each option among the words."""
    spellings = {one for parameter in command(name).params for one in parameter.opts}
    return {word for word in words if word.startswith("-")} <= spellings


def test_the_unit_of_rounds_is_accepted_and_runs_a_command(tmp_path: Path) -> None:
    [text] = blocks(CONTINUOUS, "ini")
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    found = {section: set(parser[section]) for section in parser.sections()}
    assert found == DIRECTIVES
    assert complaints(tmp_path, "lakeload-rounds.service", text) == []
    _, name, *words = shlex.split(parser["Service"]["ExecStart"])
    assert options_exist(name, words)


def kubernetes_errors(manifest: dict[str, Any]) -> list[str]:
    """Return what the schema of Kubernetes says of a manifest; unknown fields are errors."""
    group = manifest["apiVersion"].replace("/", ".")
    kind = f"#/$defs/io.k8s.api.{group}.{manifest['kind']}"
    schema = {"$ref": kind, "$defs": KUBERNETES["$defs"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(manifest)]


def manifest_of(page: str) -> dict[str, Any]:
    """Return the only manifest of Kubernetes on a page; its pipelines have no `kind`."""
    texts = blocks((DOCS / f"{page}.md").read_text(encoding="utf-8"), "yaml")
    [manifest] = [one for one in map(yaml.safe_load, texts) if "kind" in one]
    return dict(manifest)


@pytest.mark.parametrize("page", ["run-continuously", "deployment"])
def test_a_manifest_keeps_to_the_schema_of_kubernetes(page: str) -> None:
    manifest = manifest_of(page)
    assert kubernetes_errors(manifest) == []
    manifest["spec"]["terminationGracePeriodSeconds"] = 60
    assert kubernetes_errors(manifest), "a field at the wrong place is an error"


def test_the_deployment_of_rounds_runs_a_command_and_looks_at_its_file() -> None:
    pod = manifest_of("run-continuously")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    name, *words = container["args"]
    assert options_exist(name, words)
    health = words[words.index("--health-file") + 1]
    assert health in container["livenessProbe"]["exec"]["command"][-1]
    # Kubernetes kills what has not ended in its time: `--stop-within` is 25 s by default.
    assert pod["terminationGracePeriodSeconds"] > 25


def compose_file(folder: Path) -> Path:
    """Write the Compose file of the page of rounds, with the files that it names."""
    [text] = [one for one in blocks(CONTINUOUS, "yaml") if one.startswith("services:")]
    (folder / ".env").write_text("AWS_REGION=us-east-1\n", encoding="utf-8")
    path = folder / "compose.yml"
    path.write_text(text, encoding="utf-8")
    return path


def compose_problems(path: Path) -> str:
    """Return what the schema of Compose says of a file, and Compose itself where it is installed;
    '' for a file that is good."""
    schema = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    commands = [[*schema, str(path)]]
    compose = ["docker", "compose"]
    if shutil.which("docker") and not ended([*compose, "version"]).returncode:
        commands.append([*compose, "--file", str(path), "config", "--quiet"])
    results = [ended(command) for command in commands]
    return "".join(one.stdout + one.stderr for one in results if one.returncode)


def ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_compose_file_is_accepted(tmp_path: Path) -> None:
    path = compose_file(tmp_path)
    assert compose_problems(path) == ""
    path.write_text(path.read_text().replace("    init: true", "    initially: true"))
    assert "initially" in compose_problems(path)


def test_the_compose_file_runs_a_command_and_looks_at_its_file(tmp_path: Path) -> None:
    file = yaml.safe_load(compose_file(tmp_path).read_text(encoding="utf-8"))
    [service] = file["services"].values()
    name, *words = service["command"]
    assert options_exist(name, words)
    health = words[words.index("--health-file") + 1]
    # Compose replaces `$$` by `$`.
    kind, check = service["healthcheck"]["test"]
    assert (kind, check.count("$"), check.count("$$")) == ("CMD-SHELL", 2, 1)
    (tmp_path / "health").touch()
    shell = check.replace("$$", "$").replace(health, str(tmp_path / "health"))
    assert ended(["sh", "-c", shell]).returncode == 0
    os.utime(tmp_path / "health", (0, 0))
    assert ended(["sh", "-c", shell]).returncode == 1
    # Docker kills what has not ended in its time: `--stop-within` is 25 s by default.
    assert int(service["stop_grace_period"].removesuffix("s")) > 25
    named = {volume.partition(":")[0] for volume in service["volumes"]}
    assert named == {".", *file["volumes"]}
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"VOLUME {service['volumes'][1].partition(':')[2]}" in image
    assert f"WORKDIR {service['volumes'][0].split(':')[1]}" in image


def test_the_workflow_keeps_to_its_schema(tmp_path: Path) -> None:
    [workflow] = blocks(SCHEDULING, "yaml")
    (tmp_path / "load.yml").write_text(workflow, encoding="utf-8")
    schema = "vendor.github-workflows"
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "load.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_cron_job_runs_a_command_of_lakeload() -> None:
    [text] = blocks((DOCS / "deployment.md").read_text(encoding="utf-8"), "yaml")
    manifest = yaml.safe_load(text)
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    name, *words = container["args"]
    spellings = {one for parameter in command(name).params for one in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= spellings
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
