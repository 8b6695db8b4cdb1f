"""JobSpec → SparkSession: the settings that decide what is loaded. How fast and where it runs
(master, memory, batch sizes) comes from spark-submit's properties."""

from __future__ import annotations

from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.os_user import stand_in_name

_RUNTIME_SETTINGS = {
    # One meaning of every timestamp text, on every machine.
    "spark.sql.session.timeZone": "UTC",
    # A value that does not fit is an error; `on_bad_value` decides what follows.
    "spark.sql.ansi.enabled": "true",
    # `Orders` and `orders` may be two columns of a file; a header is taken as it is written.
    "spark.sql.caseSensitive": "true",
    # Both would leave out rows without a word.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # The only shuffle of a load brings one number of each partition together.
    "spark.sql.shuffle.partitions": "1",
    # Encoders are given batches of their own types.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
_STATIC_SETTINGS = {
    # Two attempts of one task at once would both upload.
    "spark.speculation": "false",
    # Tables share the executors instead of waiting for each other.
    "spark.scheduler.mode": "FAIR",
}
_MIN_PARTITIONS = "spark.sql.files.minPartitionNum"
"""Spark derives the size of file splits from the cores it has at that moment. Executors that join
between the counting pass and the load would change every partition."""

_MAX_BYTES = "spark.sql.files.maxPartitionBytes"
_NAMES = (
    "PythonUtils",
    "java.lang.String",
    "java.util",
    "org.apache.iceberg.catalog",
    "org.apache.iceberg.expressions",
    "org.apache.iceberg.spark",
    "org.apache.spark.sql.classic",
    "py4j.reflection.TypeUtil",
)
"""Packages and classes that Spark's Python and the loads ask the JVM for all the time."""


_SPARKS_OWN = {
    _MAX_BYTES: "128MB",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
"""What Spark takes where a setting is not given, of those that lakeload reads."""


def setting(spark: SparkSession, name: str) -> str:
    """Return a setting with which Spark was started.

    `spark.conf` would make Java load Spark's SQL engine: a second of CPU, which a load whose rows
    never pass through Spark does not need.
    """
    conf = spark.sparkContext.getConf()
    older = name.replace(".sql.parquet.", ".sql.legacy.parquet.")
    return str(conf.get(name) or conf.get(older) or _SPARKS_OWN[name])


def build_session(spec: JobSpec) -> SparkSession:
    """Start, or take over, the Spark session of this job."""
    conf = SparkConf().setAppName(f"lakeload:{spec.pipeline}")
    of_format = dict(format_of(spec.destination).session_settings) if spec.format_jars else {}
    conf.setAll([*(_STATIC_SETTINGS | _RUNTIME_SETTINGS | of_format).items()])
    if user := stand_in_name():
        _log_in(user)
    context = SparkContext.getOrCreate(conf)
    java: Any = context._jvm
    if java.org.apache.spark.sql.classic.SparkSession.getDefaultSession().isDefined():
        session = SparkSession.builder.getOrCreate()
        configure(session)
        return session
    # A new session takes its settings from the context; `configure` costs what `setting` says.
    context._conf.setIfMissing(_MIN_PARTITIONS, str(context.defaultParallelism))
    if context.getConf().get("spark.sql.extensions") is None:
        _make_session(context)
    session = SparkSession.builder.getOrCreate()
    _keep_names(java)
    return session


def _log_in(user: str) -> None:
    """Give Hadoop its user: it would ask the system for a name, which has none."""
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(user))


def _make_session(context: SparkContext) -> None:
    """Make the session that Spark's builder takes over, without what jars register as extensions
    (docs/design-notes.md)."""
    jvm: Any = context._jvm
    spark_session = jvm.org.apache.spark.sql.classic.SparkSession
    nothing, options = jvm.scala.Option.empty(), jvm.PythonUtils.toScalaMap({})
    extensions = jvm.org.apache.spark.sql.SparkSessionExtensions()
    session = spark_session(context._jsc.sc(), nothing, nothing, extensions, options, options)
    spark_session.setDefaultSession(session)


def configure(session: SparkSession) -> None:
    """Apply the settings that a running session can take."""
    for name, value in _RUNTIME_SETTINGS.items():
        session.conf.set(name, value)
    if session.conf.get(_MIN_PARTITIONS, None) is None:
        parallelism = session.sparkContext.defaultParallelism
        session.conf.set(_MIN_PARTITIONS, str(parallelism))
    _keep_names(session._jvm)


def _keep_names(jvm: Any) -> None:
    """Keep names of the JVM where Python looks for them first.

    py4j asks for each part of a name, each time anew, and before Java says that `org` is a package
    it has looked for a class of that name in every jar, once for each package that Spark imports.
    That was a fifth of the CPU time of a small load of an Iceberg table.
    """
    for name in _NAMES:
        place = jvm
        for part in name.split("."):
            found = getattr(place, part)
            setattr(place, part, found)
            place = found
