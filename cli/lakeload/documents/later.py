"""What the design promises and this version does not build: refused by name, at its line.

A setting that is accepted and does nothing would be worse than one that is refused.
"""

from __future__ import annotations

from lakeload.config.model import Finding, not_yet

_KEYS: dict[str, dict[str, str]] = {
    "Pipeline": {"upload_interval": "continuous loading (`upload_interval`)"},
    "Source": {
        "url": "JDBC (`url`)",
        "user": "JDBC (`user`)",
        "password": "JDBC (`password`)",
    },
    "Table": {
        "lookback": "incremental loading (`lookback`)",
        "query": "JDBC (`query`)",
        "exclude": "JDBC (`exclude` of a table)",
        "detect_deletes": "handling deletes (`detect_deletes`)",
    },
}

_OFF = (
    "`cursor` in `tables[]` without `mode: UPSERT`",
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
    return [*values, *_OFF, *keys]


def later_key(model: str, key: str) -> Finding | None:
    """Return the finding for a key that belongs to a feature not built, else None."""
    what = _KEYS.get(model, {}).get(key)
    return None if what is None else not_yet(what, "remove the line")


def later_value(model: str, field: str, value: str) -> Finding | None:
    """Return the finding for a value that belongs to a feature not built, else None."""
    if value in _VALUES.get((model, field), ()):
        return not_yet(f"`{field}: {value}`")
    return None
