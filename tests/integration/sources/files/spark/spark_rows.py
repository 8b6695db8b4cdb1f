"""Rows of files as Spark's own readers read them, in few jobs; and what differs from lakeload's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType, VariantType, _parse_datatype_json_string

from lakeload_jobs.contract.errors import LoadFailed
from tests.corpus.oracle import said
from tests.integration.sources.files.spark.recorded import SparkOracle

_DOCS = Path(__file__).parents[5] / "docs"
_FILE = "_file"
_JAVA_OBJECT = re.compile(r"calling o\d+\.")
"""The number by which py4j knows an object, another one in each run."""
_CONDITION = re.compile(r"\[([A-Z_.0-9]+)\]")


@dataclass(frozen=True)
class Found:
    """What one reader makes of the files of a case: its types and rows, or why it has none."""

    types: str = ""
    rows: Sequence[Any] = field(default=())
    error: str = ""

    @property
    def shown(self) -> str:
        """The error, or the types."""
        return self.error or self.types


def by_lakeload(read: Callable[..., pa.Table], files: Mapping[str, list[Path]]) -> dict[str, Found]:
    """Return what the direct reader makes of each case."""
    found = {}
    for name, paths in files.items():
        try:
            found[name] = _of_table(read(*paths))
        except LoadFailed as error:
            found[name] = Found(error=error.message)
    return found


def _of_table(table: pa.Table) -> Found:
    """Return what lakeload read, with the types that Spark has for it."""
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return Found(schema.simpleString(), _rows_of(table))


def answered(
    oracle: SparkOracle,
    name: str,
    question: Any,
    ask: Callable[[SparkSession], Mapping[str, Found]],
) -> dict[str, Found]:
    """Return what Spark makes of each case, as it is recorded."""

    def asked(spark: SparkSession) -> dict[str, list[Any]]:
        return {case: [one.types, one.rows, one.error] for case, one in ask(spark).items()}

    answer: dict[str, list[Any]] = oracle.answer(name, question, asked)
    return {case: Found(*one) for case, one in answer.items()}


@dataclass(frozen=True)
class SparkFiles:
    """Reads files of one format, each by itself, those of one schema in one job."""

    spark: SparkSession
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def read(self, paths: Iterable[Path], apart: Iterable[Path] = ()) -> dict[Path, Found]:
        """Return what each file holds. Files of `apart` may have rows that cannot be read: a job
        that fails is run for each file again."""
        found: dict[Path, Found] = {}
        groups: dict[tuple[str, bool], list[Path]] = defaultdict(list)
        schemas: dict[str, StructType] = {}
        rare = set(apart)
        for path in paths:
            try:
                schema = self.schema(path)
            except Exception as error:  # noqa: BLE001 - Java's come as many classes
                found[path] = Found(error=condition(error))
                continue
            schemas[schema.json()] = schema
            groups[schema.json(), path in rare].append(path)
        for (name, _), some in groups.items():
            found |= self._rows(schemas[name], some)
        return found

    def together(self, paths: Sequence[Path], types: str) -> Found:
        """Return the rows of several files as one table of these types, in the order of `paths`."""
        schema = StructType.fromDDL(types)
        assert isinstance(schema, StructType)
        found = self._rows(schema, paths)
        error = next((one.error for one in found.values() if one.error), "")
        return Found(types, [row for path in paths for row in found[path].rows], error)

    def schema(self, path: Path) -> StructType:
        """Return the schema that Spark infers."""
        if self.format == "parquet":
            return self._of_footer(path)
        schema: StructType = self._reader().load(str(path)).schema
        return schema

    def _of_footer(self, path: Path) -> StructType:
        """Return the schema of a Parquet file without a job of Spark."""
        jvm: Any = self.spark._jvm
        hadoop = jvm.org.apache.parquet.hadoop
        name = jvm.org.apache.hadoop.fs.Path(str(path))
        conf = jvm.org.apache.hadoop.conf.Configuration()
        opened = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(name, conf))
        try:
            footer = hadoop.Footer(name, opened.getFooter())
        finally:
            opened.close()
        parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
        converter = parquet.ParquetToSparkSchemaConverter(
            self.spark._jsparkSession.sessionState().conf()
        )
        java = parquet.ParquetFileFormat.readSchemaFromFooter(footer, converter)
        schema = _parse_datatype_json_string(java.json())
        assert isinstance(schema, StructType)
        return schema

    def _rows(self, schema: StructType, paths: Sequence[Path]) -> dict[Path, Found]:
        types = schema.simpleString()
        try:
            frame = self._reader().schema(schema).load([str(path) for path in paths])
            rows = _rows(frame, F.col("_metadata.file_name").alias(_FILE))
        except Exception as error:  # noqa: BLE001
            if len(paths) == 1:
                return {paths[0]: Found(types, error=condition(error))}
            return {path: one for some in paths for path, one in self._rows(schema, [some]).items()}
        own: dict[str, list[Any]] = {path.name: [] for path in paths}
        for row in rows:
            own[row.pop(_FILE)].append(row)
        return {path: Found(types, own[path.name]) for path in paths}

    def _reader(self) -> Any:
        return self.spark.read.format(self.format).options(**self.options)


def condition(error: Exception) -> str:
    """Return the name of Spark's error, and the type that it is about."""
    text = _JAVA_OBJECT.sub("calling ", str(error))
    if cause := re.search(r"Caused by: \S*IllegalArgumentException: (.*)", text):
        return cause[1]
    last = [name for name in _CONDITION.findall(text) if name != "INTERNAL_ERROR"]
    about = re.search(r"(?:Illegal Parquet type|not yet supported): ([^.]+)\.", text)
    name = error.getCondition() if isinstance(error, PySparkException) else None
    name = name or (last[-1] if last else text.strip().splitlines()[0])
    return f"{name}: {about[1]}" if about else str(name)


def _shown(own: Any) -> Column:
    column = F.col("`" + own.name.replace("`", "``") + "`")
    return F.to_json(column).alias(own.name) if own.dataType == VariantType() else column


def _rows(frame: DataFrame, *more: Column) -> list[Any]:
    shown = frame.select(*more, *map(_shown, frame.schema))
    return _rows_of(shown.toArrow())


def _rows_of(table: pa.Table) -> list[Any]:
    return [said(_sorted_maps(row)) for row in table.to_pylist()]


def _sorted_maps(value: Any) -> Any:
    """Return a value with the pairs of maps in the order of their keys: Spark's reader of Avro has
    another one than the file."""
    if isinstance(value, dict):
        return {name: _sorted_maps(one) for name, one in value.items()}
    if isinstance(value, list):
        values = [_sorted_maps(one) for one in value]
        is_map = all(isinstance(one, tuple) for one in values)
        return sorted(values, key=lambda pair: repr(pair[0])) if is_map else values
    return tuple(map(_sorted_maps, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Intended:
    """A difference that is meant.

    `spark` and `lakeload` are patterns of what each makes of a case (`Found.shown`), `cases` how
    many cases are so. `sentence` is where the documentation says it. `as_spark` returns what Spark
    is to have found, given what lakeload found: then everything else is compared.
    """

    spark: str
    lakeload: str
    cases: int
    sentence: str
    page: str = "decisions/0021-own-readers-for-files.md"
    as_spark: Callable[[Found], Found] | None = None

    def holds(self, spark: Found, lakeload: Found) -> bool:
        """Whether the two readers differ so, and not otherwise."""
        if self.as_spark is not None:
            return lakeload != spark == self.as_spark(lakeload)
        shown = ((self.spark, spark.shown), (self.lakeload, lakeload.shown))
        return all(re.search(pattern, text) for pattern, text in shown)


def check(found: Mapping[str, tuple[Found, Found]], intended: Mapping[str, Intended]) -> None:
    """Fail where Spark and lakeload differ beyond `intended`, or do not differ so any more.

    `found` is what Spark and lakeload make of each case. What both refuse is no difference.
    """
    counts = dict.fromkeys(intended, 0)
    different = []
    for case, (spark, lakeload) in found.items():
        if spark == lakeload or (spark.error and lakeload.error):
            continue
        reasons = (name for name, one in intended.items() if one.holds(spark, lakeload))
        if (reason := next(reasons, None)) is not None:
            counts[reason] += 1
        else:
            different.append((case, *_difference(spark, lakeload)))
    assert not different, "\n".join(map(str, different))
    assert counts == {name: one.cases for name, one in intended.items()}, counts
    for one in intended.values():
        check_sentence(one.page, one.sentence)


def check_sentence(page: str, sentence: str) -> None:
    """Fail where a page of the documentation does not have a sentence."""
    text = " ".join((_DOCS / page).read_text(encoding="utf-8").split())
    assert sentence in text, f"{page} does not say: {sentence}"


def _difference(spark: Found, lakeload: Found) -> tuple[str, str]:
    if spark.shown != lakeload.shown:
        return spark.shown, lakeload.shown
    pairs = zip(spark.rows, lakeload.rows, strict=False)
    count = (f"{len(spark.rows)} rows", f"{len(lakeload.rows)} rows")
    return next(((str(one), str(other)) for one, other in pairs if one != other), count)
