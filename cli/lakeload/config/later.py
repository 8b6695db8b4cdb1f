"""What the design promises and this version does not build: refused by name, at its line.

A setting that is accepted and does nothing would be worse than one that is refused.
"""

from __future__ import annotations

from lakeload.config.model import Finding, not_yet

_INCREMENTAL = "incremental loading"

_KEYS: dict[str, dict[str, str]] = {
    "Pipeline": {"upload_interval": "continuous loading (`upload_interval`)"},
    "Source": {
        "url": "JDBC (`url`)",
        "user": "JDBC (`user`)",
        "password": "JDBC (`password`)",
    },
    "Table": {
        "cursor": f"{_INCREMENTAL} (`cursor`)",
        "lookback": f"{_INCREMENTAL} (`lookback`)",
        "query": "JDBC (`query`)",
        "exclude": "JDBC (`exclude` of a table)",
        "deletes": "handling deletes (`deletes`)",
        "detect_deletes": "handling deletes (`detect_deletes`)",
    },
}

_OFF = (
    "loading tables of `table_format: ICEBERG`",
    "`mode: OVERWRITE`, `mode: UPSERT` and `schema_changes: EVOLVE`, which need ICEBERG",
    "`spark.master` other than `local…` and `spark://…`",
)

_VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("Source", "type"): ("JDBC", "KAFKA", "SPARK", "MESSAGES"),
    ("Source", "format"): ("XML",),
    ("Table", "format"): ("XML",),
}


def later_settings() -> list[str]:
    """Return what is refused for now, for the reference page."""
    homes = {"Pipeline": "pipeline.yml", "Source": "`source`", "Table": "`tables[]`"}
    keys = [f"`{key}` in {homes[model]}" for model, named in _KEYS.items() for key in named]
    values = [
        f"`{field}: {value}`" + (f" in {homes[model]}" if model in homes else " in destination.yml")
        for (model, field), named in _VALUES.items()
        for value in named
    ]
    return [*values, *_OFF, *keys, "`partition_by` in `tables[]`"]


def cannot_load_yet(table_format: str) -> Finding:
    """Return the finding for a destination that can be checked and tested, but not loaded."""
    return Finding(
        f"tables of `table_format: {table_format}` cannot be loaded yet",
        "`validate`, `policy` and `test-connection` work with this destination already; "
        "to load now, write `table_format: PARQUET`",
        ("table_format",),
        "not-supported-yet",
    )


def later_key(model: str, key: str) -> Finding | None:
    """Return the finding for a key that belongs to a feature not built, else None."""
    if model == "Table" and key == "partition_by":
        return Finding(
            "`partition_by` is a setting of table_format ICEBERG, which is not supported yet",
            "Parquet files are laid out by `parquet.partition_strategy` of the destination",
            code="not-supported-yet",
        )
    what = _KEYS.get(model, {}).get(key)
    return None if what is None else not_yet(what, "remove the line")


def later_value(model: str, field: str, value: str) -> Finding | None:
    """Return the finding for a value that belongs to a feature not built, else None."""
    if (model, field) == ("Table", "mode") and value in ("OVERWRITE", "UPSERT"):
        return _mode(value)
    if (model, field, value) == ("Pipeline", "schema_changes", "EVOLVE"):
        return Finding(
            "`schema_changes: EVOLVE` needs table_format ICEBERG, which is not supported yet",
            "`ADD_COLUMNS` is what append-only Parquet files can do",
            code="not-supported-yet",
        )
    if value in _VALUES.get((model, field), ()):
        return not_yet(f"`{field}: {value}`")
    return None


def _mode(mode: str) -> Finding:
    return Finding(
        f"`mode: {mode}` is not possible with table_format PARQUET, which only appends",
        "load with `mode: APPEND` and let the reader choose\n"
        "the latest load: with `partition_strategy: SYNC_ID` in the destination each load has a "
        "folder of its own\n"
        "the latest version of each row, in Athena:\n"
        "  SELECT * FROM (\n"
        "    SELECT *, row_number() OVER (\n"
        "      PARTITION BY _supa_id\n"
        "      ORDER BY _supa_synced DESC, _supa_index DESC\n"
        "    ) AS latest_per_supa_id FROM t\n"
        "  ) WHERE latest_per_supa_id = 1 AND NOT _supa_deleted",
        code="append-only",
    )
