"""Identity of a relation: a table that is created again under its name is another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeload_jobs.contract.errors import LoadFailed


@dataclass(frozen=True)
class RelationIdentity:
    """What a relation is, as its catalog has it.

    `id` is '' where the database shows none. `files` are those of its rows. All of them are others
    after TRUNCATE, and after a statement that rewrites the table, such as VACUUM FULL. For MariaDB
    and MySQL it is the time at which the table was created or altered.
    """

    id: str
    files: frozenset[str]

    def has_other_rows(self, before: RelationIdentity) -> bool:
        """Whether no file of `before` remains."""
        return bool(before.files) and not before.files & self.files

    def check_same(self, before: RelationIdentity, name: str, hint: str) -> None:
        """Raise `LoadFailed` where it is another relation."""
        if self.id != before.id:
            raise LoadFailed(
                f"`{name}` was dropped and created again since the last load (oid {before.id}, now "
                f"{self.id}): what earlier loads have read says nothing of its rows",
                hint=hint,
            )


@dataclass(frozen=True)
class NotedRelation:
    """What a commit notes of a relation: its identity, and a digest of each column of the rows with
    the greatest cursor, by which they are known again."""

    identity: RelationIdentity
    rows: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as a commit holds it."""
        identity = self.identity
        return {"id": identity.id, "files": sorted(identity.files), "rows": dict(self.rows)}


def read_relation(state: Mapping[str, Any]) -> NotedRelation | None:
    """Return what a commit has noted; None in states from before. Raises `KeyError`, `TypeError`
    and `ValueError`."""
    noted = state.get("relation")
    if noted is None:
        return None
    identity = RelationIdentity(str(noted["id"]), frozenset(map(str, noted["files"])))
    return NotedRelation(identity, dict(noted["rows"]))
