"""A Java process without Spark, in which commands try the JDBC drivers of sources."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from lakeload.machine.cache import cache_directory
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import JARS, pinned
from lakeload.machine.java import find_java
from lakeload.machine.spark import find_spark
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.errors import MachineNotReady
from lakeload_jobs.contract.spec import JdbcInput


class JavaDrivers:
    """The drivers of one database. The process starts with the first one; close it."""

    def __init__(self, read: JdbcInput, environment: Mapping[str, str]) -> None:
        self._read = read
        self._environment = environment

    def __call__(self, name: str) -> tuple[Any, Any]:
        """Return the driver of a class, and empty properties. Raises `MachineNotReady` without
        Java, Spark or a jar."""
        jvm = self._gateway.jvm
        return reduce(getattr, name.split("."), jvm)(), jvm.java.util.Properties()

    @cached_property
    def _gateway(self) -> JavaGateway:
        facts = facts_of(self._read, "JVM")
        cache = cache_directory(self._environment) / JARS
        jars = [*fetch(pinned(*sorted(facts.jar_sets)), cache, self._environment), *facts.jars]
        spark, java = find_spark(self._environment), find_java(self._environment)
        bridge = next(iter(sorted(spark.home.glob("jars/py4j-*.jar"))), None)
        if bridge is None:
            raise MachineNotReady(
                f"Spark in `{spark.home}` has no jar of py4j", hint="install Spark again"
            )
        # It ends with this process, and answers only to those who know its token.
        port, token = launch_gateway(
            jarpath=str(bridge),
            classpath=":".join(map(str, jars)),
            javaopts=["-Xmx256m", "-Duser.timezone=UTC"],
            java_path=str(Path(java.home) / "bin" / "java"),
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=subprocess.DEVNULL,
        )
        return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))

    def close(self) -> None:
        """End the process."""
        if "_gateway" in self.__dict__:
            self._gateway.shutdown()
