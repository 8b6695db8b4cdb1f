"""Whatever Spark throws becomes one sentence: its cause, the setting to change, an exit code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from lakeload_jobs.contract.errors import ExitCode, Interrupted, LoadFailed
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.sources.files.files_in_use import FOLDER, in_use


class JavaClass:
    def __init__(self, name: str) -> None:
        self._name = name

    def getName(self) -> str:
        return self._name


class JavaError:
    """A Java exception with its causes, as py4j shows it."""

    def __init__(self, *chain: tuple[str, str]) -> None:
        (self._name, self._message), *rest = chain
        self._cause = JavaError(*rest) if rest else None

    def getClass(self) -> JavaClass:
        return JavaClass(self._name)

    def getMessage(self) -> str:
        return self._message

    def getSimpleMessage(self) -> str:
        return self._message.partition(";\n")[0]

    def getCause(self) -> JavaError | None:
        return self._cause

    def getSQLState(self) -> str:
        if not self._name.startswith("java.sql."):
            raise Py4JError("Method getSQLState([]) does not exist")
        return "22012"


def spark_error(*chain: tuple[str, str]) -> PySparkException:
    error = PySparkException(message="An error occurred while calling o1.collectToPython")
    cast(object, error).__dict__["java_exception"] = JavaError(*chain)
    return error


READ = (
    "org.apache.spark.SparkException",
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "file:///data/a%20b%5B1%5D.csv.  SQLSTATE: KD001",
)


def test_a_malformed_record_names_file_record_and_reason() -> None:
    info = describe(
        spark_error(
            READ,
            (
                "org.apache.spark.SparkException",
                "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected "
                "in record parsing: [3,null].\nParse Mode: FAILFAST. To process malformed records "
                "as null result, try setting the option 'mode' as 'PERMISSIVE'.  SQLSTATE: 22023",
            ),
            ("java.lang.NumberFormatException", 'For input string: "abc"'),
        ),
        "stage",
    )

    assert info.message == (
        'reading `/data/a b[1].csv`: the record `[3,null]` cannot be read: For input string: "abc"'
    )
    assert (info.type, info.stage, info.exit_code) == ("MalformedRecord", "stage", 1)


def test_the_plan_of_an_analysis_says_nothing_of_its_failure() -> None:
    message = "[DATATYPE_MISMATCH] cannot resolve `a`. SQLSTATE: 42K09"
    plan = "Filter (note = No space left on device)\nProject [reading file file:///a.csv]"
    error = ("org.apache.spark.sql.catalyst.ExtendedAnalysisException", f"{message};\n{plan}")

    info = describe(spark_error(error), "stage")

    assert (info.type, info.message) == ("DATATYPE_MISMATCH", "cannot resolve `a`.")


def test_an_unreadable_file_is_named_with_the_innermost_cause() -> None:
    info = describe(
        spark_error(
            ("org.apache.spark.SparkException", "Job aborted due to stage failure: Task 0 …"),
            ("org.apache.spark.SparkException", "Exception thrown in awaitResult: "),
            (
                "org.apache.spark.SparkException",
                "[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file "
                "file:/data/bad.parquet. Could not read footer. Please ensure that …",
            ),
            ("java.lang.RuntimeException", "file:/data/bad.parquet is not a Parquet file"),
        ),
        "open",
    )

    assert info.message == (
        "reading `/data/bad.parquet`: file:/data/bad.parquet is not a Parquet file"
    )
    assert info.type == "UnreadableFile"


def test_memory_of_the_jvm_names_its_setting() -> None:
    info = describe(
        spark_error(
            ("org.apache.spark.SparkException", "Job aborted"),
            ("java.lang.OutOfMemoryError", "Java heap space"),
        ),
        "count",
    )

    assert "driver_memory" in info.message
    assert info.exit_code == ExitCode.MACHINE


def test_an_error_of_any_database_has_its_state() -> None:
    info = describe(
        spark_error(
            ("org.apache.spark.SparkException", "Job aborted due to stage failure"),
            ("java.sql.SQLDataException", "Division by zero; SQL statement: SELECT 1 / 0"),
        ),
        "stage",
    )

    assert info.message == "reading the source: Division by zero (SQLSTATE 22012)"
    assert (info.type, info.retryable) == ("LoadFailed", False)


def test_killed_worker_is_reported_as_killed() -> None:
    info = describe(
        spark_error(("org.apache.spark.SparkException", "Python worker exited unexpectedly")),
        "stage",
    )

    assert "Python worker of Spark was killed" in info.message
    assert info.exit_code == ExitCode.MACHINE
    assert info.retryable


def test_worker_that_ended_at_a_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    process = os.fork()
    if not process:
        with in_use("/data/a.orc"):
            os._exit(0)
    os.waitpid(process, 0)

    died = spark_error(("org.apache.spark.SparkException", "Python worker exited unexpectedly"))
    info = describe(died, "stage")

    assert "ended while it read `/data/a.orc`" in info.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("java.io.IOException", "No space left on device"),
        ("java.nio.file.FileSystemException", "/c/a.jar -> /t/a.jar: No space left on device"),
        ("java.io.FileNotFoundException", "/t/blockmgr-1/0a/x (No space left on device)"),
        ("java.io.IOException", "Disk quota exceeded"),
    ],
)
def test_a_full_disk_of_the_jvm_names_its_setting(name: str, text: str) -> None:
    info = describe(spark_error(READ, (name, text)), "count")

    assert "disk is full" in info.message
    assert "spark.local.dir" in (info.hint or "")
    assert info.exit_code == ExitCode.MACHINE


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError()]
)
def test_stopped_jvm_is_reported_as_stopped(error: Exception) -> None:
    info = describe(error, "stage")

    assert "Java process ended" in info.message
    assert "driver_memory" in info.message
    assert info.exit_code == ExitCode.MACHINE


def test_error_whose_text_needs_a_stopped_jvm_is_reported() -> None:
    class Dead(PySparkException):
        def __str__(self) -> str:
            raise Py4JNetworkError("Answer from Java side is empty")

    assert "Java process ended" in describe(Dead(message="x"), "stage").message


def test_other_errors_of_spark_keep_their_class_and_reason() -> None:
    info = describe(
        spark_error(
            (
                "org.apache.spark.SparkNumberFormatException",
                "[CAST_INVALID_INPUT] The value '5a' of the type \"STRING\" cannot be cast to "
                '"INT" because it is malformed. Correct the value as per the syntax, or … '
                "SQLSTATE: 22018\n== SQL (line 1, position 1) ==\ncast(…)",
            )
        ),
        "stage",
    )

    assert info.type == "CAST_INVALID_INPUT"
    assert info.message == (
        'The value \'5a\' of the type "STRING" cannot be cast to "INT" because it is malformed.'
    )


def test_expected_failures_keep_their_message() -> None:
    info = describe(LoadFailed("no", hint="do", retryable=True), "open")

    assert (info.message, info.hint, info.retryable, info.exit_code) == ("no", "do", True, 1)
    assert describe(Interrupted("stop"), None).exit_code == 130


def test_unexpected_failure_is_a_bug() -> None:
    info = describe(KeyError("x"), "count")

    assert info.exit_code == ExitCode.BUG
    assert "a bug in lakeload: KeyError" in info.message


def test_an_object_that_cannot_be_read_is_named_as_the_user_named_it() -> None:
    info = describe(
        spark_error(
            (
                "org.apache.spark.SparkException",
                "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
                "s3a://exports/day%201/a.csv. File does not exist. It is possible the underlying "
                "files have been updated.\nYou can explicitly … SQLSTATE: KD001",
            ),
            ("java.io.FileNotFoundException", "No such file or directory"),
        ),
        "stage",
    )

    assert info.type == "UnreadableFile"
    assert info.message.startswith("reading `s3://exports/day 1/a.csv`: ")
