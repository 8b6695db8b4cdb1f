"""Spark's properties for one launch: what lakeload decides, what the user may add. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lakeload.documents.spark import conf_finding, is_local
from lakeload.launch.jvm import class_data, collector, compiler, inherited_options, local_cores
from lakeload_jobs.contract.errors import InvalidInput

SQL_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""MERGE, branches and procedures of Iceberg tables. Spark reads the setting once, at its start."""

REDACTION = (
    r"(?i)secret|password|passwd|token|credential|access[._-]?key|api[._-]?key"
    r"|external[._-]?id|authorization|\.header\.|://[^/@\s]+:[^/@\s]+@"
)
"""Matched on names and values (DESIGN section 6). Only a net: no secret is in a property."""


def spark_properties(
    *,
    master: str,
    memory: str,
    log_settings: Path,
    scratch: Path,
    extra: Mapping[str, str],
    cores: int = 1,
    input_bytes: int | None = None,
    jars: Sequence[Path] = (),
    iceberg: bool = False,
    executor_options: Sequence[str] = (),
    archive: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the properties of a launch, sorted by name.

    `memory` is the driver's heap, `log_settings` log4j's file, `scratch` a folder of this run,
    `extra` the document's `spark.conf` with `--conf` over it, `cores` those of this machine,
    `input_bytes` what the job will read, None if unknown, `jars` what Spark needs and does not
    have, `iceberg` whether tables are Iceberg's, `executor_options` what else executors are started
    with, `archive` the class data of just this class path, `environment` the variables that JVMs on
    this machine are started with. Raises `InvalidInput` for a key that lakeload decides, or that
    looks like a secret.
    """
    check_conf(extra)
    properties = {
        "spark.driver.memory": memory,
        "spark.redaction.regex": REDACTION,
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # Spark makes this folder whether or not a table is ever kept in it.
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.submit.deployMode": "client",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if is_local(master) and not master.startswith("local-cluster"):
        # Nobody else connects, and a host name that does not resolve then does no harm.
        properties["spark.driver.host"] = "127.0.0.1"
        properties["spark.driver.bindAddress"] = "127.0.0.1"
    if iceberg:
        properties["spark.sql.extensions"] = SQL_EXTENSIONS
    properties.update(extra)
    properties.update(_class_path(master, jars, extra))
    if not is_local(master) or extra.get("spark.driver.extraClassPath", "").strip():
        archive = None  # its class path is another one
    inherited = inherited_options(environment)
    options = _java_options(
        master, log_settings, extra, inherited, cores, input_bytes, archive, executor_options
    )
    for role, text in options.items():
        properties[f"spark.{role}.extraJavaOptions"] = text
    return dict(sorted(properties.items()))


def check_conf(conf: Mapping[str, str]) -> None:
    """Raise `InvalidInput` for the first `--conf` that a document could not set either."""
    for name, value in conf.items():
        if finding := conf_finding(name, value):
            raise InvalidInput(f"`--conf`: {finding.message}", hint=finding.hint)
        if re.search(r"[\s=:]", name):
            raise InvalidInput(
                f"`--conf`: `{name}` is not the name of a property",
                hint="write --conf spark.some.name=value",
            )


def check_master(master: str) -> None:
    """Raise `InvalidInput` for a `--master` that a document could not name either."""
    if not is_local(master) and not master.startswith("spark://"):
        raise InvalidInput(
            f"`--master`: the master `{master}` is not supported yet",
            hint="`local[*]`, `local-cluster[N,CORES,MB]` and `spark://HOST:PORT` are",
        )


def parse_conf(assignments: tuple[str, ...]) -> dict[str, str]:
    """Read `--conf spark.key=value` options. Raises `InvalidInput` for one without `=`."""
    parsed = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(
                f"`--conf {assignment}` has no value", hint="write --conf spark.some.name=value"
            )
        parsed[key.strip()] = value
    return parsed


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file; backslashes and line ends are escaped."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _class_path(master: str, jars: Sequence[Path], extra: Mapping[str, str]) -> dict[str, str]:
    """Return how the JVMs get `jars`, before those the user adds.

    The class path costs least (docs/decisions/0050), but names files: executors on other machines
    do not have them, and Spark sends them along.
    """
    if not jars:
        return {}
    if not is_local(master):
        users = extra.get("spark.jars", "").strip()
        return {"spark.jars": ",".join([*(jar.as_uri() for jar in jars), *filter(None, [users])])}
    names = [f"spark.{role}.extraClassPath" for role in ("driver", "executor")]
    return {
        name: ":".join([*map(str, jars), *filter(None, [extra.get(name, "").strip()])])
        for name in names
    }


def _java_options(
    master: str,
    log_settings: Path,
    extra: Mapping[str, str],
    inherited: str,
    cores: int,
    input_bytes: int | None,
    archive: Path | None,
    of_executors: Sequence[str],
) -> dict[str, str]:
    """Return the options of both JVMs; Java takes the last of two that contradict each other,
    which is the user's. Those of variables come before ours, so ours give way to them here."""
    users = {
        role: extra.get(f"spark.{role}.extraJavaOptions", "").strip()
        for role in ("driver", "executor")
    }
    in_driver = local_cores(master, cores)
    all_of_driver = f"{inherited} {users['driver']}"
    all_of_executor = f"{inherited if is_local(master) else ''} {users['executor']}"
    driver = [
        collector(in_driver, all_of_driver),
        compiler(input_bytes, all_of_driver) if in_driver else "",
        class_data(archive, all_of_driver),
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        users["driver"],
    ]
    executor = [
        collector(None, all_of_executor),
        "-Duser.timezone=UTC",
        *of_executors,
        users["executor"],
    ]
    return {
        "driver": " ".join(filter(None, driver)),
        "executor": " ".join(filter(None, executor)),
    }


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # A leading blank would be taken for the one after the equals sign.
    return f"\\{escaped}" if escaped[:1] in (" ", "\t", "\f") else escaped
