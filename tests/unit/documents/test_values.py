"""Single settings: what is accepted, what is refused."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from pydantic_core import PydanticCustomError

from lakeload.config.document import Ambiguous, resolved
from lakeload.config.model import FINDINGS
from lakeload.documents.columns import check_type
from lakeload.documents.cross import remote_findings
from lakeload.documents.load import load_destination
from lakeload.documents.spark import OWNED, conf_finding
from tests.unit.documents.documents import DESTINATION, PIPELINE, TABLES, problems_of


@pytest.mark.parametrize(
    ("setting", "value", "valid"),
    [
        ("bucket", "abc", True),
        ("bucket", "a.b-c.1", True),
        ("bucket", "ab", False),
        ("bucket", "-abc", False),
        ("bucket", "a..b", False),
        ("bucket", "192.168.5.4", False),
        ("bucket", "x" * 64, False),
        ("bucket", "arn:aws:s3:::my-data-lake", False),
        ("region", "us-gov-west-1", True),
        ("region", "auto", True),
        ("region", "us_east_1", False),
        ("prefix", '""', True),
        ("prefix", "/a/b/", True),
        ("prefix", "a//b", False),
        ("prefix", "//a", False),
        ("prefix", "/", True),
        ("prefix", "a/./b", False),
        ("prefix", "a/../b", False),
        ("prefix", "s3://b/a", False),
        ("prefix", "a/_lakeload", False),
        ("endpoint_url", '""', True),
        ("endpoint_url", "http://localhost:9000/", True),
        ("endpoint_url", "https://[::1]:9000", True),
        ("endpoint_url", "ftp://host", False),
        ("endpoint_url", "https://host:port", False),
        ("endpoint_url", "https://host/?x=1", False),
        ("endpoint_url", "https://", False),
        ("endpoint_url", "'https://ho st'", False),
        ("target_file_size", "1MiB", True),
        ("target_file_size", "1.5 GB", True),
        ("target_file_size", "1073741824", True),
        ("target_file_size", "1023KiB", False),
        ("target_file_size", "65GiB", False),
        ("target_file_size", "true", False),
        ("target_file_size", "-1", False),
        ("single_writer", "TRUE", True),
        ("single_writer", '"true"', False),
        ("single_writer", "1", False),
    ],
)
def test_a_setting_of_a_destination(setting: str, value: str, valid: bool, tmp_path: Path) -> None:
    lines = {"version": "1", "bucket": "my-data-lake", "region": "us-east-1", setting: value}

    found = problems_of(tmp_path, "".join(f"{key}: {text}\n" for key, text in lines.items()))

    assert (found == []) is valid
    assert all(problem.key == setting for problem in found)


@pytest.mark.parametrize(
    ("region", "meant"),
    [
        ("us-east1", "us-east-1"),
        ("us-esat-1", "us-east-1"),
        ("us-east", "us-east-1"),
        ("frankfurt", "eu-central-1"),
        ("ireland", "eu-west-1"),
    ],
)
def test_a_misspelt_region_is_an_error_that_names_the_right_one(
    region: str, meant: str, tmp_path: Path
) -> None:
    text = f"version: 1\nbucket: my-data-lake\nregion: {region}\n"

    [problem] = problems_of(tmp_path, text)

    assert (problem.severity, problem.key) == ("error", "region")
    assert f"`{region}`" in problem.message
    assert f"did you mean `{meant}`?" in (problem.hint or "")
    assert problems_of(tmp_path, f"{text}endpoint_url: https://s3.example.com\n") == []


@pytest.mark.parametrize("region", ["garage", "nyc3", "fr-par"])
def test_a_region_of_another_store_is_noted_without_an_endpoint(
    region: str, tmp_path: Path
) -> None:
    text = f"version: 1\nbucket: my-data-lake\nregion: {region}\n"

    [problem] = problems_of(tmp_path, text)

    assert (problem.severity, problem.key) == ("note", "region")
    assert "`endpoint_url`" in (problem.hint or "")


def test_every_region_that_boto3_knows_is_accepted(tmp_path: Path) -> None:
    session = boto3.Session()
    known = [
        name
        for group in session.get_available_partitions()
        for name in session.get_available_regions("s3", group)
    ]

    for region in known:
        assert problems_of(tmp_path, f"version: 1\nbucket: lake\nregion: {region}\n") == [], region


@pytest.mark.parametrize(
    ("arn", "valid"),
    [
        ("arn:aws:iam::123456789012:role/R", True),
        ("arn:aws-us-gov:iam::123456789012:role/a/b/R_1+=,.@-", True),
        ("arn:aws:iam::000000000000:role/R", True),
        ("arn:aws:iam::12345678901:role/R", False),
        ("arn:aws:iam::123456789012:user/R", False),
        ("R", False),
    ],
)
def test_the_arn_of_a_role(arn: str, valid: bool, tmp_path: Path) -> None:
    text = f"{DESTINATION}credentials: {{role_arn: '{arn}'}}\n"

    assert (problems_of(tmp_path, text) == []) is valid


@pytest.mark.parametrize(
    ("setting", "valid"),
    [
        ("name: a", True),
        ("name: A.b_c-1", True),
        ("name: -a", False),
        (f"name: {'x' * 129}", False),
        ("concurrency: 64", True),
        ("concurrency: 0", False),
        ("concurrency: 1.0", False),
        ("spark: {driver_memory: 1g}", True),
        ("spark: {driver_memory: 600M}", True),
        ("spark: {driver_memory: 511m}", False),
        ("spark: {driver_memory: 8}", False),
        ("schema_changes: FAIL", True),
        ("table_handling: APPEND", True),
        ("nested: json", False),
        ('namespace: ""', True),
    ],
)
def test_a_setting_of_a_pipeline(setting: str, valid: bool, tmp_path: Path) -> None:
    head = PIPELINE.replace("name: shop\n", "") if setting.startswith("name:") else PIPELINE

    assert (problems_of(tmp_path, f"{head}{setting}\n{TABLES}") == []) is valid


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("1.50", 1.5),
        ("text", "text"),
        ("1.2.3", "1.2.3"),
        ("12:34:56:78:x", "12:34:56:78:x"),
        ("-", "-"),
        (".", "."),
        ("2026/11", "2026/11"),
        ("e3", "e3"),
        ("y", "y"),
        ("N", "N"),
        ("nothing", "nothing"),
    ],
)
def test_unquoted_text_has_one_meaning(text: str, value: object) -> None:
    assert resolved(text) == value
    assert type(resolved(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "No", "ON", "off", "NULL", "0123", "0x1F", "0b1", "0o17", "1_000", "+5"),
        *("1:30", "12:34:56", "1e3", ".5", "5.", ".inf", "-.INF", ".NaN", "2026-11-21"),
        *("2026-11-21T10:15:30Z", "2026-1-1 10:15:30", "99999999999999999999"),
    ],
)
def test_unquoted_yaml_text_with_two_readings_is_ambiguous(text: str) -> None:
    assert isinstance(resolved(text), Ambiguous)


@pytest.mark.parametrize(
    "text",
    [
        *("int", "BIGINT", "string", "decimal", "decimal(38,38)", "dec(5)", "numeric( 5 , 2 )"),
        *("char(3)", "varchar(10)", "timestamp_ntz", "binary", "real", "array<int>"),
        *("timestamp(ms)", "timestamp_ntz( NS )", "Timestamp(s)", "timestamp(us)"),
        *("map<string,array<decimal(3,1)>>", "struct<a:int,b:struct<c: string>>"),
        *("struct<a int, `b c` string, `d``e` date>", " int ", "Array< Int >"),
    ],
)
def test_spark_types_are_read(text: str) -> None:
    assert check_type(text) == text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "the type `` ends too early", None),
        ("integr", "Spark SQL has no type `integr`", "did you mean `integer`?"),
        ("datetime", "Spark SQL has no type `datetime`", "write `timestamp`"),
        ("decimal(39,2)", "`39` is out of range", "1 to 38"),
        ("decimal(5,6)", "`6` is out of range", "0 to 5"),
        ("decimal(0)", "`0` is out of range", "1 to 38"),
        ("decimal(a)", "has an unexpected `a`", None),
        ("timestamp(m)", "`m` is no unit of time", "`ms`"),
        ("timestamp(", "ends too early", None),
        ("date(ms)", "has an unexpected `(`", None),
        ("array<timestamp(ms)>", "has an unexpected `(`", None),
        ("decimal(5,2", "ends too early", None),
        ("int int", "has an unexpected `int`", None),
        ("array<int", "ends too early", None),
        ("array int", "has an unexpected `int`", None),
        ("map<string>", "has an unexpected `>`", None),
        ("struct<>", "has an unexpected `>`", None),
        ("struct<a>", "has an unexpected `>`", None),
        ("char", "ends too early", None),
        ("int)", "has an unexpected `)`", None),
        ("variant", "the type `variant` is not supported yet", "load it as `string`"),
        ("array<" * 12 + "int" + ">" * 12, "nested more than 10 levels", None),
        ("décimal", "Spark SQL has no type `décimal`", "did you mean `decimal`?"),
        ("int;drop", "has an unexpected `;`", None),
    ],
)
def test_invalid_spark_type_is_explained(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        check_type(text)

    (problem,) = (refused.value.context or {})[FINDINGS]
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("master", "code"),
    [("yarn", "not-supported-yet"), ("local[", "invalid"), ("spark://h:1", "remote-secret")],
)
def test_the_flag_for_the_master_is_checked_like_the_setting(
    master: str, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        f"{DESTINATION}credentials:\n  role_arn: arn:aws:iam::123456789012:role/R\n"
        "  external_id: {env: ID}\n"
    )
    destination = load_destination(path, {}).model

    findings = remote_findings({"spark": {"master": master}}, destination)

    assert [finding.code for finding in findings] == [code]


@pytest.mark.parametrize("name", OWNED)
def test_spark_property_reserved_by_lakeload_is_rejected(name: str) -> None:
    for below in (name.rstrip("."), name.rstrip(".") + ".more"):
        finding = conf_finding(below, "x")
        assert finding is not None
        assert finding.hint == OWNED[name]


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("spark.sql.shuffle.partitions", "8", True),
        ("spark.eventLog.enabled", "true", True),
        ("spark.executor.memory", "2g", True),
        ("spark.speculationist", "x", True),
        ("spark.executorEnv.AWS_SECRET_ACCESS_KEY", "x", False),
        ("spark.my.Password", "x", False),
        ("spark.jars.repositories", "https://u:p@host/", False),
        ("spark", "x", False),
        ("hadoop.tmp.dir", "x", False),
    ],
)
def test_properties_of_spark(name: str, value: str, accepted: bool) -> None:
    assert (conf_finding(name, value) is None) is accepted


@pytest.mark.parametrize(
    ("master", "reference", "accepted"),
    [
        ("local[2]", "{env: ID}", True),
        ("local-cluster[2,1,1024]", "{env: ID}", True),
        ("spark://h:7077", "{env: ID}", False),
        ("spark://h:7077", "${ID}", False),
        ("spark://h:7077", "{file: id}", False),
        ("spark://h:7077", "{aws_secret: id}", True),
        ("spark://h:7077", "{aws_parameter: id}", True),
    ],
)
def test_environment_secrets_on_a_cluster_are_rejected(
    master: str, reference: str, accepted: bool, tmp_path: Path
) -> None:
    (tmp_path / "d.yaml").write_text(
        f"{DESTINATION}credentials:\n  role_arn: arn:aws:iam::123456789012:role/R\n"
        f"  external_id: {reference}\n"
    )
    head = PIPELINE.replace("{version: 1, bucket: my-data-lake, region: us-east-1}", "d.yaml")

    found = problems_of(tmp_path, f"{head}{TABLES}spark: {{master: '{master}'}}\n")

    assert [problem.code for problem in found] == ([] if accepted else ["remote-secret"])


@pytest.mark.parametrize(
    ("lines", "noted"),
    [
        ("namespace: a\ndestination_prefix: b\n", True),
        ("destination_prefix: b\n", False),
        ("namespace: a\n", False),
        ('namespace: a\ndestination_prefix: ""\n', False),
    ],
)
def test_a_destination_prefix_that_a_namespace_replaces_is_noted(
    lines: str, noted: bool, tmp_path: Path
) -> None:
    (tmp_path / "destination.yml").write_text(DESTINATION)

    found = problems_of(tmp_path, f"{PIPELINE}{lines}{TABLES}")

    assert [problem.severity for problem in found] == ["note"] * noted
    assert all("has no effect" in problem.message for problem in found)


@pytest.mark.parametrize(
    ("endpoints", "noted"),
    [
        ("endpoint_url: http://minio:9000\n", True),
        ("endpoints: {s3: 'http://minio:9000'}\n", True),
        ("endpoints: {s3: 'http://minio:9000', sts: 'http://minio:9000'}\n", False),
        ("endpoint_url: https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com\n", False),
        ("", False),
    ],
)
def test_a_role_of_another_store_is_not_assumed_at_aws_unnoticed(
    endpoints: str, noted: bool, tmp_path: Path
) -> None:
    role = "credentials: {role_arn: 'arn:aws:iam::123456789012:role/R'}\n"

    found = problems_of(tmp_path, f"{DESTINATION}{endpoints}{role}")

    assert [(one.severity, one.key) for one in found] == [("note", "credentials.role_arn")] * noted
    assert all("sts.us-east-1.amazonaws.com" in problem.message for problem in found)
    assert all("`endpoints: {sts: http://minio:9000}`" in (one.hint or "") for one in found)
