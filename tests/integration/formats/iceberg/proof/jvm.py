"""A JVM with Iceberg's client, driven from Python, without Spark: it starts in two seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaGateway

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import pinned
from lakeload.machine.java import find_java
from tests.servers.catalog_jars import py4j_jar
from tests.servers.jars import CACHE, REPOSITORY


@contextmanager
def iceberg_jvm(folder: Path) -> Iterator[JavaGateway]:
    """Start the JVM with the jars that the product pins; its log lies in `folder`.

    Its AWS identity is the emulator's administrator, for the one client (Glue) that takes none
    from a catalog's properties.
    """
    own = fetch(pinned("iceberg"), CACHE / "jars", REPOSITORY)
    spark = Path(pyspark.__file__).with_name("jars")
    with (folder / "client.log").open("w") as log:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j_jar()),
            classpath=os.pathsep.join(map(str, [*own, *sorted(spark.glob("*.jar"))])),
            javaopts=[
                *("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *("-Daws.accessKeyId=test", "-Daws.secretAccessKey=test", "-Daws.region=us-east-1"),
            ],
            java_path=str(find_java(os.environ).home / "bin" / "java"),
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
        )
        try:
            yield gateway
        finally:
            gateway.shutdown()
            gateway.java_process.stdin.close()
            gateway.java_process.wait(timeout=20)


def open_catalog(gateway: JavaGateway, properties: Mapping[str, str]) -> Any:
    """Return a catalog object of its own, as another process would have one."""
    settings = gateway.jvm.java.util.HashMap()
    for name, value in properties.items():
        settings.put(name, value)
    hadoop = gateway.jvm.org.apache.hadoop.conf.Configuration(False)
    return gateway.jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog("lake", settings, hadoop)
