"""Spark's properties: the exact file of a launch, the keys lakeload keeps for itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeload.launch.properties import (
    FEW_KEPT,
    REDACTION,
    LaunchRequest,
    SparkSettings,
    executor_options,
    parse_conf,
    render,
    spark_properties,
)
from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, EndpointsSpec
from lakeload_jobs.contract.traits import FORMATS

FOLDER = RunFolder(Path("/r"))
GOLDEN = Path(__file__).parents[2] / "cases" / "launch"


def made(master: str = "local[2]", **extra: str) -> dict[str, str]:
    conf = {key.replace("__", "."): value for key, value in extra.items()}
    folder = RunFolder(Path("/state/my runs/r1"))
    return spark_properties(LaunchRequest(SparkSettings(master, "4096m", conf), folder))


def test_the_properties_file_of_a_local_run_is_exactly_this() -> None:
    assert render(made()) == (GOLDEN / "local.conf").read_text(encoding="utf-8")


def test_the_properties_file_of_a_cluster_run_with_conf_is_exactly_this() -> None:
    text = render(
        made(
            "spark://master:7077",
            spark__executor__memory="2g",
            spark__ui__enabled="true",
            spark__driver__extraJavaOptions="-XX:+UseG1GC",
        )
    )
    assert text == (GOLDEN / "cluster.conf").read_text(encoding="utf-8")


def test_iceberg_tables_bring_their_sql_and_their_executors_options() -> None:
    destination = DestinationSpec("b", "eu-west-1", endpoints=EndpointsSpec(sts="http://sts:1"))
    conf = {"spark.executor.extraJavaOptions": "-Xss4m"}
    jars = (Path("/c/iceberg.jar"),)
    properties = spark_properties(
        LaunchRequest(
            SparkSettings("local-cluster[2,1,1024]", "1g", conf, jars),
            FOLDER,
            session_settings=FORMATS["ICEBERG"].session_settings,
            executor_options=executor_options(destination),
        )
    )

    assert properties["spark.sql.extensions"].endswith(".IcebergSparkSessionExtensions")
    assert properties["spark.executor.extraClassPath"] == "/c/iceberg.jar"
    assert properties["spark.executor.extraJavaOptions"] == (
        "-XX:+UseParallelGC -Duser.timezone=UTC -Daws.region=eu-west-1 "
        "-Daws.endpointUrlSts=http://sts:1 -Xss4m"
    )
    assert "spark.sql.extensions" not in made()


def test_java_options_name_at_most_one_collector() -> None:
    for chosen in ("-XX:+UseG1GC", "-Xss4m -XX:+UseZGC", "-XX:+UseSerialGC"):
        options = made(spark__driver__extraJavaOptions=chosen)["spark.driver.extraJavaOptions"]
        assert len(re.findall(r"-XX:\+Use\w+GC", options)) == 1


@pytest.mark.parametrize(
    "key",
    [
        "spark.master",
        "spark.app.name",
        "spark.driver.memory",
        "spark.redaction.regex",
        "spark.scheduler.mode",
        "spark.speculation",
        "spark.sql.session.timeZone",
        "spark.sql.extensions",
        "spark.sql.catalog.lake",
        "spark.sql.catalog.lake.token",
        "spark.submit.deployMode",
        "spark.submit.pyFiles",
        "spark.pyspark.python",
        "spark.ui.showConsoleProgress",
        "spark.hadoop.fs.s3a.secret.key",
    ],
)
def test_spark_property_set_by_lakeload_is_rejected(key: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"`{key}`")):
        made(**{key: "x"})


def test_spark_properties_of_lakeload_cannot_be_overridden() -> None:
    adjustable = {
        "spark.authenticate",
        "spark.driver.bindAddress",
        "spark.driver.extraJavaOptions",
        "spark.driver.host",
        "spark.executor.extraJavaOptions",
        "spark.python.daemon.module",
        "spark.sql.catalogImplementation",
        "spark.sql.warehouse.dir",
        "spark.ui.enabled",
        *FEW_KEPT,
    }
    for key in set(made()) - adjustable:
        with pytest.raises(InvalidInput):
            made(**{key: "x"})


def test_spark_keeps_few_of_what_has_ended_unless_its_ui_is_on() -> None:
    name = "spark.ui.retainedJobs"
    assert FEW_KEPT.items() <= made().items()
    assert made(**{name: "7"})[name] == "7"
    assert not FEW_KEPT.keys() & made(**{"spark.ui.enabled": "true"}).keys()


@pytest.mark.parametrize("key", ["executor.memory", "spark.a b", "spark.a=b", "spark.x\ny"])
def test_a_key_that_is_no_spark_property_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="property"):
        made(**{key: "x"})


def test_conf_options_split_at_the_first_equals_sign() -> None:
    assert parse_conf(("spark.a=b=c", "spark.d=")) == {"spark.a": "b=c", "spark.d": ""}
    with pytest.raises(InvalidInput, match="has no value"):
        parse_conf(("spark.a",))


@pytest.mark.parametrize("value", ["a\\b", " leading", "two\nlines", "tab\tin", r"\d+", "ü=:#!"])
def test_a_value_survives_the_properties_file(value: str) -> None:
    assert _java_properties(render({"spark.k": value})) == {"spark.k": value}


@pytest.mark.parametrize(
    "name",
    [
        "external-id",
        "fs.s3a.access.key",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "session-token",
        "header.X-Api",
        "jdbc:postgresql://me:pw@host/db",
        "DB_PASSWD",
    ],
)
def test_the_redaction_pattern_covers(name: str) -> None:
    assert re.search(REDACTION, f"x.{name}")


def _java_properties(text: str) -> dict[str, str]:
    """What java.util.Properties reads, for the escapes that we write."""
    parsed = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        assert not value.startswith(" "), "Java drops blanks after the equals sign"
        plain = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), value)
        parsed[key] = plain
    return parsed


def with_jars(master: str, **extra: str) -> dict[str, str]:
    conf = {key.replace("__", "."): value for key, value in extra.items()}
    settings = SparkSettings(
        master, "1g", conf, jars=(Path("/my cache/a.jar"), Path("/my cache/b.jar"))
    )
    return spark_properties(LaunchRequest(settings, FOLDER))


@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,1024]"])
def test_jars_are_on_the_class_path_where_every_jvm_is_on_this_machine(master: str) -> None:
    properties = with_jars(master, spark__driver__extraClassPath="/mine.jar")

    assert properties["spark.driver.extraClassPath"] == "/my cache/a.jar:/my cache/b.jar:/mine.jar"
    assert properties["spark.executor.extraClassPath"] == "/my cache/a.jar:/my cache/b.jar"
    assert "spark.jars" not in properties


def test_jars_travel_to_executors_on_other_machines() -> None:
    properties = with_jars("spark://master:7077", spark__jars="/mine.jar")

    assert properties["spark.jars"] == "file:///my%20cache/a.jar,file:///my%20cache/b.jar,/mine.jar"
    assert "spark.driver.extraClassPath" not in properties


def with_archive(master: str, **extra: str) -> dict[str, str]:
    conf = {key.replace("__", "."): value for key, value in extra.items()}
    settings = SparkSettings(master, "1g", conf, archive=Path("/cache/x.jsa"))
    return spark_properties(LaunchRequest(settings, FOLDER))


@pytest.mark.parametrize("master", ["local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_the_driver_of_a_local_master_alone_has_the_class_data_archive(master: str) -> None:
    properties = with_archive(master)

    assert "-XX:SharedArchiveFile=/cache/x.jsa" in properties["spark.driver.extraJavaOptions"]
    assert "Archive" not in properties["spark.executor.extraJavaOptions"]


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_java_options_of_variables_count_as_user_options(variable: str) -> None:
    options = "-XX:+UseG1GC -XX:TieredStopAtLevel=4 -Xshare:off -Xmn64m"
    settings = SparkSettings("local[2]", "1g", {}, archive=Path("/cache/x.jsa"))
    properties = spark_properties(LaunchRequest(settings, FOLDER, {variable: options}, jvm_bytes=0))

    for role in ("driver", "executor"):
        given = properties[f"spark.{role}.extraJavaOptions"]
        assert not re.search(r"-XX:|-Xshare", given)


def test_java_options_of_variables_do_not_apply_to_executors_of_a_cluster() -> None:
    settings = SparkSettings("spark://master:7077", "1g", {})
    properties = spark_properties(
        LaunchRequest(settings, FOLDER, {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"})
    )

    assert "GC" not in properties["spark.driver.extraJavaOptions"]
    assert "-XX:+UseParallelGC" in properties["spark.executor.extraJavaOptions"]


def test_another_class_path_or_machine_has_no_class_data_archive() -> None:
    for properties in (
        with_archive("spark://master:7077"),
        with_archive("local[2]", spark__driver__extraClassPath="/mine.jar"),
    ):
        assert "Archive" not in properties["spark.driver.extraJavaOptions"]
