"""Spark's properties for one launch: what lakeload decides, what the user may add. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lakeload.config.spark import conf_finding, is_local
from lakeload_jobs.contract.errors import InvalidInput

REDACTION = (
    r"(?i)secret|password|passwd|token|credential|access[._-]?key|api[._-]?key"
    r"|external[._-]?id|authorization|\.header\.|://[^/@\s]+:[^/@\s]+@"
)
"""Matched on names and values (DESIGN section 6). Only a net: no secret is in a property."""


def spark_properties(
    *, master: str, memory: str, log_settings: Path, scratch: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a launch, sorted by name.

    `memory` is the driver's heap, `log_settings` log4j's file, `scratch` a folder of this run,
    `extra` the document's `spark.conf` with `--conf` over it. Raises `InvalidInput` for a key that
    lakeload decides, or that looks like a secret.
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
    properties.update(extra)
    ours = {
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC "
        f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    }
    for key, options in ours.items():
        properties[key] = _java_options(options, extra.get(key, "").strip())
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


def _java_options(ours: str, users: str) -> str:
    """Join both; Java takes the last of two that contradict each other: the user's."""
    # ParallelGC takes less CPU than G1 in a JVM that only feeds Python (decision 0031). Java
    # refuses to start with two collectors.
    collector = "" if re.search(r"-XX:\+Use\w*GC\b", users) else "-XX:+UseParallelGC"
    return " ".join(filter(None, (collector, ours, users)))


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # A leading blank would be taken for the one after the equals sign.
    return f"\\{escaped}" if escaped[:1] in (" ", "\t", "\f") else escaped
