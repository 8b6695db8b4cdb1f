"""Iceberg's `DataFile` of each file that tasks have written, from its footer: no file is read."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from pyspark.sql import SparkSession

from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.iceberg.load.tables import Java, jvm

_NAME_MAPPING = "schema.name-mapping.default"


class DataFileBuilder:
    """Makes the data files of one partition spec of a table.

    Iceberg's own code works out metrics and split offsets of a footer. What a footer does not tell
    goes in through Iceberg's JSON of a data file: py4j cannot fill a Java map with longs.
    """

    def __init__(self, spark: SparkSession, java_table: Java, spec_id: int) -> None:
        java: Java = jvm(spark)
        iceberg = java.org.apache.iceberg
        self._specs = java_table.specs()
        self._spec = self._specs.get(spec_id)
        self._partition_types = [str(field.type()) for field in self._spec.partitionType().fields()]
        self._metrics = iceberg.MetricsConfig.forTable(java_table)
        mapping = java_table.properties().get(_NAME_MAPPING)
        parse = iceberg.mapping.NameMappingParser.fromJson
        self._mapping = parse(mapping) if mapping else None
        parquet = iceberg.shaded.org.apache.parquet
        converter = parquet.format.converter.ParquetMetadataConverter
        # Without options it takes no message at all: "Max message size must be positive: -1".
        self._converter = converter(parquet.ParquetReadOptions.builder().build())
        self._no_filter = converter.NO_FILTER
        # Py4j asks Java for each part of a name: once, not for each of thousands of files.
        util, content = iceberg.parquet.ParquetUtil, iceberg.ContentFileParser
        self._read_json, self._from_json = iceberg.util.JsonUtil.mapper().readTree, content.fromJson
        self._to_json, self._builder = content.toJson, iceberg.DataFiles.builder
        self._metrics_of, self._split_offsets = util.footerMetrics, util.getSplitOffsets
        self._stream = java.java.io.ByteArrayInputStream
        self._no_fields = java.java.util.stream.Stream.empty
        self._day = java.java.time.LocalDate.ofEpochDay

    def build(self, location: str, file: StagedFile, facts: str) -> Java:
        """Return the data file at `location`. `facts` are those of `IcebergFiles.encode`."""
        found = json.loads(facts)
        footer = zlib.decompress(base64.b64decode(found["footer"]))
        described = self._described(location, file, footer)
        for number, floats in found["floats"].items():
            self._add_floats(described, int(number), floats)
        if self._partition_types:
            values = zip(found["partition"], self._partition_types, strict=True)
            described["partition"] = [self._single_value(value, kind) for value, kind in values]
        return self._from_json(self._read_json(json.dumps(described)), self._specs)

    def _single_value(self, value: Any, kind: str) -> Any:
        """Return a value of `transforms.by_partition` as Iceberg's JSON has it: dates are text."""
        if value is None or kind != "date":
            return value
        return str(self._day(value).toString())

    def _described(self, location: str, file: StagedFile, footer: bytes) -> dict[str, Any]:
        metadata = self._converter.readParquetMetadata(self._stream(footer), self._no_filter)
        metrics = self._metrics_of(metadata, self._no_fields(), self._metrics, self._mapping)
        built = (
            self._builder(self._spec)
            .withPath(location)
            .withFormat("PARQUET")
            .withFileSizeInBytes(file.bytes)
            .withMetrics(metrics)
            .withRecordCount(file.rows)
            .withSplitOffsets(self._split_offsets(metadata))
            .build()
        )
        described: dict[str, Any] = json.loads(str(self._to_json(built, self._spec)))
        return described

    def _add_floats(self, described: dict[str, Any], number: int, floats: Any) -> None:
        """Put in NaN counts and bounds, as far as the table wants statistics of the column."""
        mode = str(self._metrics.columnMode(number).toString())
        if mode == "none":
            return
        _put(described, "nan-value-counts", number, floats["nan"])
        for name, value in (("lower-bounds", floats["low"]), ("upper-bounds", floats["high"])):
            if mode == "counts" or value is None:
                _drop(described, name, number)
            else:
                _put(described, name, number, value)


def _put(described: dict[str, Any], name: str, number: int, value: object) -> None:
    _drop(described, name, number)
    entries = described.setdefault(name, {"keys": [], "values": []})
    entries["keys"].append(number)
    entries["values"].append(value)


def _drop(described: dict[str, Any], name: str, number: int) -> None:
    entries = described.get(name)
    if entries and number in entries["keys"]:
        at = entries["keys"].index(number)
        del entries["keys"][at], entries["values"][at]
