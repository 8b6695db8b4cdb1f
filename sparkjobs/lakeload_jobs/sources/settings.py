"""Demands of settings on a source, whatever its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.rows.columns import source_names


def refuse_limit(*, incremental: bool, limit: int | None) -> None:
    """Raise `InvalidInput`: a file or a window of which some rows are loaded is neither loaded nor
    not."""
    if incremental and limit is not None:
        raise InvalidInput(
            "`--limit` cannot be used with incremental loads (`incremental: true` of files, "
            "`cursor` of a database): rows that are left out would count as loaded",
            hint="use a separate pipeline that loads all rows, with another `name` and `namespace`",
        )


def check_types(types: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """Return `types` by the source's names. Raises `InvalidInput` for a column that the source does
    not have."""
    own = source_names(types, names)
    types = {own[name]: kind for name, kind in types.items()}
    for name in types:
        if name not in names:
            raise InvalidInput(
                f"`columns.types` names the column `{name}`, which the source does not have",
                hint=did_you_mean(name, names) or f"the columns are `{'`, `'.join(names)}`",
            )
    return types
