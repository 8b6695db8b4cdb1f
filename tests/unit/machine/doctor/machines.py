"""Machines that tests make up: none of them is the one the tests run on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakeload.machine.doctor.model import CheckContext, CheckResult, Host, Need
from lakeload.ui.checks import word
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec

DEBIAN = 'ID=debian\nVERSION_ID="12"\n'


def context(
    folder: Path,
    variables: Mapping[str, str] | None = None,
    *,
    need: Need | None = None,
    offline: bool = False,
    seconds: float = 5.0,
    **environment: str,
) -> CheckContext:
    """Return a Debian with nothing in it but the variables given; its files are below `folder`."""
    host = Host(
        environment={"PATH": "", **(variables or {}), **environment},
        platform="linux",
        os_release=DEBIAN,
        cache=folder / "cache",
        runs=folder / "runs",
        proc=folder / "proc",
        cgroups=folder / "cgroups",
        java_places=(),
    )
    return CheckContext(host, need or Need(), offline=offline, seconds=seconds)


def destination(
    *, s3: str | None = None, credentials: CredentialsSpec | None = None
) -> DestinationSpec:
    """Return a destination in us-east-1."""
    return DestinationSpec(
        "lake",
        "us-east-1",
        credentials=credentials or CredentialsSpec(),
        endpoints=EndpointsSpec(s3=s3),
    )


def statuses(findings: tuple[CheckResult, ...] | list[CheckResult]) -> Mapping[str, str]:
    """Return what `doctor` calls the status of each finding; the last of a name counts."""
    return {finding.name: word(finding) for finding in findings}


def java(home: Path, version: str, modules: str = "") -> Path:
    """Make a Java whose `release` file tells `version` and, if given, `modules`."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    listed = f'MODULES="{modules}"\n' if modules else ""
    (home / "release").write_text(f'IMPLEMENTOR="Acme"\nJAVA_VERSION="{version}"\n{listed}')
    return home


def spark(home: Path, version: str) -> Path:
    """Make a Spark of `version` that has nothing but its core jar and spark-submit."""
    (home / "jars").mkdir(parents=True)
    (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
    (home / "bin").mkdir()
    (home / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    (home / "bin" / "spark-submit").chmod(0o755)
    return home
