"""What another process of this machine can do with the ports of a local driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _connect(spark: SparkSession, *, secret: str | None) -> str:
    """Ask the driver's port for its BlockManagerMaster, as a Spark with this secret would."""
    jvm: Any = spark._jvm
    rpc, manager = jvm.org.apache.spark.rpc, jvm.org.apache.spark.SecurityManager
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.rpc.lookupTimeout", "10s")
    if secret is not None:
        conf = conf.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
    defaults = [getattr(manager, f"$lessinit$greater$default${number}")() for number in (2, 3)]
    security = manager(conf, *defaults)
    driver = spark.sparkContext.getConf()
    address = rpc.RpcAddress("127.0.0.1", int(driver.get("spark.driver.port") or 0))
    environment = rpc.RpcEnv.create("foreign", "127.0.0.1", 0, conf, security, True)
    try:
        return str(environment.setupEndpointRef(address, "BlockManagerMaster").name())
    finally:
        environment.shutdown()


def test_driver_of_a_local_master_rejects_a_spark_without_its_secret(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    own = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    assert _connect(spark, secret=own) == "BlockManagerMaster"
    with pytest.raises(Py4JJavaError):
        _connect(spark, secret=None)
