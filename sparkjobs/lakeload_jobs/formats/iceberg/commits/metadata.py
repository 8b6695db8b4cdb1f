"""The metadata of an Iceberg table as JSON: what a commit requires of it, and what it changes.

Requirements and updates are those of Iceberg's REST protocol, as dictionaries. A REST catalog is
sent them; for other catalogs `check` and `updated` do what such a server does. Fields that this
version of lakeload does not know stay as they are. So do statistics: each is bound to a snapshot,
and a new snapshot makes none of them false.

https://iceberg.apache.org/spec/ and the REST catalog's OpenAPI document are the sources of the
names and rules.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, Unsupported

Json = dict[str, Any]
Metadata = Mapping[str, Any]
"""Table metadata, as a metadata file has it."""

MAIN = "main"
FORMAT_VERSIONS = (1, 2, 3)
"""Versions of the format whose metadata is read and changed."""
DATA_VERSIONS = (2, 3)
"""Versions whose tables get new rows."""
ROW_LINEAGE = 3
"""The first version in which rows have ids."""
NO_SNAPSHOT = -1
"""What `current-snapshot-id` is in a table without rows, for readers that need a number."""

PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS = 100
_LAST_ADDED = -1
"""The id in an update that names what the same commit has added last."""
FIRST_PARTITION_ID = 1000


# Requirements


def assert_uuid(metadata: Metadata) -> Json:
    """Require the table that was read, and not a later one of its name."""
    return {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}


def assert_ref(name: str, snapshot: int | None) -> Json:
    """Require that a branch or tag is at `snapshot`; None: that there is none of the name."""
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot}


def assert_definition(metadata: Metadata) -> list[Json]:
    """Require the columns, partitions and sort order that were read."""
    return [
        {"type": kind, kind.removeprefix("assert-"): metadata.get(name, absent)}
        for kind, (name, absent) in _NUMBERS.items()
    ]


_NUMBERS: Mapping[str, tuple[str, int]] = {
    "assert-current-schema-id": ("current-schema-id", 0),
    "assert-last-assigned-field-id": ("last-column-id", 0),
    "assert-last-assigned-partition-id": ("last-partition-id", FIRST_PARTITION_ID - 1),
    "assert-default-spec-id": ("default-spec-id", 0),
    "assert-default-sort-order-id": ("default-sort-order-id", 0),
}
"""Requirement → the field of the metadata that it names, and what an absent one stands for."""


def check(metadata: Metadata | None, requirements: Iterable[Mapping[str, Any]]) -> None:
    """Raise `CommitRejected` for the first requirement that the metadata does not meet; None:
    there is no table."""
    for requirement in requirements:
        kind = requirement["type"]
        if kind == "assert-create":
            if metadata is not None:
                raise CommitRejected("the table exists already")
        elif metadata is None:
            raise CommitRejected("the table does not exist")
        elif kind == "assert-table-uuid":
            if str(metadata["table-uuid"]).lower() != str(requirement["uuid"]).lower():
                raise CommitRejected("the table was dropped and another one created under its name")
        elif kind == "assert-ref-snapshot-id":
            _check_ref(metadata, requirement["ref"], requirement["snapshot-id"])
        elif kind in _NUMBERS:
            name, absent = _NUMBERS[kind]
            if metadata.get(name, absent) != requirement[kind.removeprefix("assert-")]:
                raise CommitRejected(f"another commit has changed `{name}` of the table")
        else:
            raise Unsupported(f"the requirement `{kind}`")


def _check_ref(metadata: Metadata, name: str, expected: int | None) -> None:
    at = ref(metadata, name)
    if at == expected:
        return
    if at is None:
        raise CommitRejected(f"the branch `{name}` does not exist any more")
    if expected is None:
        raise CommitRejected(f"another commit has created the branch `{name}`")
    raise CommitRejected(f"another commit has moved the branch `{name}`")


# Updates


def add_snapshot(snapshot: Mapping[str, Any]) -> Json:
    """Add a snapshot, which no branch has yet."""
    return {"action": "add-snapshot", "snapshot": dict(snapshot)}


def set_branch(name: str, snapshot: int, **settings: int) -> Json:
    """Create a branch, or move it, with `settings` such as `min_snapshots_to_keep`."""
    return {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "type": "branch",
        "snapshot-id": snapshot,
        **{setting.replace("_", "-"): value for setting, value in settings.items()},
    }


def move_branch(metadata: Metadata, name: str, snapshot: int) -> Json:
    """Move a branch, whose settings stay, or create it."""
    settings = metadata.get("refs", {}).get(name, {})
    return {**settings, **set_branch(name, snapshot)}


def remove_ref(name: str) -> Json:
    """Remove a branch or a tag."""
    return {"action": "remove-snapshot-ref", "ref-name": name}


def remove_snapshots(ids: Iterable[int]) -> Json:
    """Remove snapshots, which no branch may have any more."""
    return {"action": "remove-snapshots", "snapshot-ids": list(ids)}


def remove_schemas(ids: Iterable[int]) -> Json:
    """Remove schemas that no snapshot has."""
    return {"action": "remove-schemas", "schema-ids": list(ids)}


def remove_specs(ids: Iterable[int]) -> Json:
    """Remove partition specs that no manifest has."""
    return {"action": "remove-partition-specs", "spec-ids": list(ids)}


def set_properties(values: Mapping[str, str]) -> Json:
    """Set properties of the table."""
    return {"action": "set-properties", "updates": dict(values)}


def remove_properties(names: Iterable[str]) -> Json:
    """Remove properties; one that is not there is no error."""
    return {"action": "remove-properties", "removals": list(names)}


def add_schema(schema: Mapping[str, Any], last_column_id: int = 0) -> list[Json]:
    """Add a schema and make it the current one. `last_column_id` is the highest id that the table
    has ever given to a column."""
    return [
        # Servers of older versions of the protocol need the highest id told.
        {
            "action": "add-schema",
            "schema": dict(schema),
            "last-column-id": max(last_column_id, highest_id({"type": "struct", **schema})),
        },
        {"action": "set-current-schema", "schema-id": _LAST_ADDED},
    ]


def add_spec(spec: Mapping[str, Any]) -> list[Json]:
    """Add a partition spec and make it the default one."""
    return [
        {"action": "add-spec", "spec": dict(spec)},
        {"action": "set-default-spec", "spec-id": _LAST_ADDED},
    ]


def add_sort_order(order: Mapping[str, Any]) -> list[Json]:
    """Add a sort order and make it the default one."""
    return [
        {"action": "add-sort-order", "sort-order": dict(order)},
        {"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED},
    ]


@dataclass(frozen=True)
class NewTable:
    """The definition of a table that is to be created. Ids of fields are those of `schema`."""

    schema: Mapping[str, Any]
    spec: Mapping[str, Any]
    order: Mapping[str, Any]
    properties: Mapping[str, str]
    format_version: int = 2

    def updates(self, location: str) -> list[Json]:
        """Return the updates that make the table of nothing."""
        return [
            {"action": "assign-uuid", "uuid": str(uuid.uuid4())},
            {"action": "upgrade-format-version", "format-version": self.format_version},
            *add_schema(self.schema),
            *add_spec(self.spec),
            *add_sort_order(self.order),
            {"action": "set-location", "location": location},
            set_properties(self.properties),
        ]


NOTHING: Metadata = {
    "format-version": 1,
    "last-sequence-number": 0,
    "last-column-id": 0,
    "last-partition-id": FIRST_PARTITION_ID - 1,
    "current-snapshot-id": NO_SNAPSHOT,
    "properties": {},
    "schemas": [],
    "partition-specs": [],
    "sort-orders": [],
    "snapshots": [],
    "refs": {},
    "statistics": [],
    "partition-statistics": [],
    "snapshot-log": [],
    "metadata-log": [],
}
"""The metadata before the first commit of a table."""


def normalised(metadata: Metadata) -> Json:
    """Return metadata with what its writer has left out, or written as null: branches, for writers
    that know `current-snapshot-id` alone, the lists of later versions than 1, and what is empty."""
    found = {**metadata, **{name: NOTHING[name] for name in NOTHING if metadata.get(name) is None}}
    if "schema" in found and not found["schemas"]:
        found["schemas"] = [{"schema-id": 0, **found["schema"]}]
    if "partition-spec" in found and not found["partition-specs"]:
        fields = [
            {"field-id": number, **field}
            for number, field in enumerate(found["partition-spec"], FIRST_PARTITION_ID)
        ]
        found["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        ids = (int(field["field-id"]) for field in fields)
        found["last-partition-id"] = max(found["last-partition-id"], *ids, 0)
    if found["schemas"]:
        first = {
            "current-schema-id": found["schemas"][0].get("schema-id", 0),
            "default-spec-id": 0,
            "default-sort-order-id": 0,
        }
        found |= {name: value for name, value in first.items() if found.get(name) is None}
    head = found["current-snapshot-id"]
    if head != NO_SNAPSHOT and MAIN not in found["refs"]:
        main = {"snapshot-id": head, "type": "branch"}
        found["refs"] = {MAIN: main, **found["refs"]}
    return found


def updated(
    metadata: Metadata,
    updates: Iterable[Mapping[str, Any]],
    *,
    replaces: str | None,
    now_ms: int,
) -> Json:
    """Return the metadata after a commit. `replaces` is the metadata file that it follows, None
    for a new table.

    Raises `CommitRejected` where an update contradicts the metadata, and `Unsupported` for one that
    is not known.
    """
    # What changes is made anew: a deep copy of a long history takes most of a commit's time.
    commit = _Commit(normalised(metadata), max(now_ms, metadata.get("last-updated-ms", 0)))
    for update in updates:
        action = update["action"]
        if action not in _UPDATES:
            raise Unsupported(f"the update `{action}`")
        _UPDATES[action](commit, update)
    return commit.done(metadata, replaces)


@dataclass
class _Commit:
    """Metadata on its way; `added` are the ids that the commit has added last, by kind."""

    new: Json
    now_ms: int
    added: dict[str, int] = field(default_factory=dict)
    head: int | None = None
    """The snapshot to which the commit has moved `main`."""
    removed: bool = False
    """Whether snapshots are gone."""

    def append(self, name: str, value: Any) -> None:
        """Add to a list, which metadata of version 1 may lack."""
        self.new[name] = [*self.new.get(name, ()), value]

    def done(self, before: Metadata, replaces: str | None) -> Json:
        """Return the metadata with its times and logs."""
        new = self.new
        log = list(new.get("snapshot-log", ()))
        if self.removed:
            # Time travel may not jump over what is gone: the log begins behind it.
            there = {snapshot["snapshot-id"] for snapshot in new["snapshots"]}
            gone = [at for at, entry in enumerate(log) if entry["snapshot-id"] not in there]
            log = log[gone[-1] + 1 :] if gone else log
        if self.head is not None:
            log.append({"snapshot-id": self.head, "timestamp-ms": self.now_ms})
        new["snapshot-log"] = log
        new["last-updated-ms"] = self.now_ms
        if replaces is not None:
            entry = {"timestamp-ms": before.get("last-updated-ms", 0), "metadata-file": replaces}
            self.append("metadata-log", entry)
            new["metadata-log"] = new["metadata-log"][-previous_versions(new) :]
        return new


def previous_versions(metadata: Metadata) -> int:
    """How many earlier metadata files a table remembers."""
    return max(1, int_property(metadata, PREVIOUS_VERSIONS, _PREVIOUS_VERSIONS))


def int_property(metadata: Metadata, name: str, default: int) -> int:
    """Return the number that a property of the table is. Raises `Unsupported` for another text,
    with which Iceberg's own commits fail as well."""
    given = metadata.get("properties", {}).get(name, str(default))
    try:
        return int(given)
    except ValueError:
        raise Unsupported(f"the value `{given}` in its property `{name}`") from None


def _assign_uuid(commit: _Commit, update: Mapping[str, Any]) -> None:
    commit.new["table-uuid"] = update["uuid"]


def _upgrade(commit: _Commit, update: Mapping[str, Any]) -> None:
    now, version = commit.new["format-version"], update["format-version"]
    if version < now:
        raise CommitRejected(f"the table has the format version {now}, which cannot be lowered")
    if version not in FORMAT_VERSIONS:
        raise Unsupported(f"the format version {version}")
    commit.new["format-version"] = version
    if version >= ROW_LINEAGE:
        commit.new.setdefault("next-row-id", 0)


def _set_location(commit: _Commit, update: Mapping[str, Any]) -> None:
    commit.new["location"] = update["location"]


def _set_properties(commit: _Commit, update: Mapping[str, Any]) -> None:
    commit.new["properties"] = {**commit.new.get("properties", {}), **update["updates"]}


def _remove_properties(commit: _Commit, update: Mapping[str, Any]) -> None:
    gone = set(update["removals"])
    there = commit.new.get("properties", {})
    commit.new["properties"] = {key: value for key, value in there.items() if key not in gone}


def _add_schema(commit: _Commit, update: Mapping[str, Any]) -> None:
    schema = update["schema"]
    commit.append("schemas", schema)
    commit.added["schema"] = schema["schema-id"]
    known = commit.new.get("last-column-id", 0)
    commit.new["last-column-id"] = max(known, highest_id(schema))


def _set_current_schema(commit: _Commit, update: Mapping[str, Any]) -> None:
    number = _number(commit, "schema", update["schema-id"])
    commit.new["current-schema-id"] = number
    if commit.new["format-version"] == 1:
        # Readers of version 1 know no list of schemas.
        commit.new["schema"] = schema_of(commit.new)


def _add_spec(commit: _Commit, update: Mapping[str, Any]) -> None:
    spec = update["spec"]
    commit.append("partition-specs", spec)
    commit.added["spec"] = spec["spec-id"]
    known = commit.new.get("last-partition-id", FIRST_PARTITION_ID - 1)
    ids = (partition["field-id"] for partition in spec["fields"])
    commit.new["last-partition-id"] = max(known, *ids, known)


def _set_default_spec(commit: _Commit, update: Mapping[str, Any]) -> None:
    number = _number(commit, "spec", update["spec-id"])
    commit.new["default-spec-id"] = number
    if commit.new["format-version"] == 1:
        commit.new["partition-spec"] = spec_of(commit.new)["fields"]


def _add_sort_order(commit: _Commit, update: Mapping[str, Any]) -> None:
    order = update["sort-order"]
    commit.append("sort-orders", order)
    commit.added["order"] = order["order-id"]


def _set_default_sort_order(commit: _Commit, update: Mapping[str, Any]) -> None:
    number = _number(commit, "order", update["sort-order-id"])
    commit.new["default-sort-order-id"] = number


def _number(commit: _Commit, kind: str, number: int) -> int:
    return commit.added[kind] if number == _LAST_ADDED else number


def _add_snapshot(commit: _Commit, update: Mapping[str, Any]) -> None:
    new, snapshot = commit.new, update["snapshot"]
    if snapshot_of(new, snapshot["snapshot-id"]) is not None:
        raise CommitRejected(f"the table has a snapshot {snapshot['snapshot-id']} already")
    sequence, last = snapshot.get("sequence-number", 0), new.get("last-sequence-number", 0)
    if new["format-version"] > 1 and sequence <= last and "parent-snapshot-id" in snapshot:
        raise CommitRejected(f"the sequence number {sequence} is taken: the last one is {last}")
    if new["format-version"] >= ROW_LINEAGE:
        if snapshot["first-row-id"] < new.get("next-row-id", 0):
            raise CommitRejected("another commit has given out the ids of these rows")
        new["next-row-id"] = new.get("next-row-id", 0) + snapshot["added-rows"]
    commit.append("snapshots", snapshot)
    new["last-sequence-number"] = max(sequence, last)
    commit.now_ms = max(commit.now_ms, snapshot["timestamp-ms"])


def _remove_snapshots(commit: _Commit, update: Mapping[str, Any]) -> None:
    new, gone = commit.new, set(update["snapshot-ids"])
    used = {name for name, at in new.get("refs", {}).items() if at["snapshot-id"] in gone}
    if used:
        raise CommitRejected(f"the branch `{min(used)}` has a snapshot that is to be removed")
    kept = [one for one in new.get("snapshots", ()) if one["snapshot-id"] not in gone]
    commit.removed |= len(kept) < len(new.get("snapshots", ()))
    new["snapshots"] = kept
    for name in ("statistics", "partition-statistics"):
        if name in new:
            new[name] = [one for one in new[name] if one["snapshot-id"] not in gone]


def _remove_schemas(commit: _Commit, update: Mapping[str, Any]) -> None:
    gone = set(update["schema-ids"])
    if commit.new.get("current-schema-id", 0) in gone:
        raise CommitRejected("the current schema is to be removed")
    there = commit.new.get("schemas", ())
    commit.new["schemas"] = [one for one in there if one["schema-id"] not in gone]


def _remove_specs(commit: _Commit, update: Mapping[str, Any]) -> None:
    gone = set(update["spec-ids"])
    if commit.new.get("default-spec-id", 0) in gone:
        raise CommitRejected("the default partition spec is to be removed")
    there = commit.new.get("partition-specs", ())
    commit.new["partition-specs"] = [one for one in there if one["spec-id"] not in gone]


def _set_ref(commit: _Commit, update: Mapping[str, Any]) -> None:
    new, name = commit.new, update["ref-name"]
    target = {key: value for key, value in update.items() if key not in ("action", "ref-name")}
    known = new.get("refs", {}).get(name)
    if known == target:
        return
    if snapshot_of(new, target["snapshot-id"]) is None:
        raise CommitRejected(f"the table has no snapshot {target['snapshot-id']}")
    new["refs"] = {**new.get("refs", {}), name: target}
    if name == MAIN and (known or {}).get("snapshot-id") != target["snapshot-id"]:
        new["current-snapshot-id"] = commit.head = target["snapshot-id"]


def _remove_ref(commit: _Commit, update: Mapping[str, Any]) -> None:
    name = update["ref-name"]
    there = commit.new.get("refs", {})
    commit.new["refs"] = {other: at for other, at in there.items() if other != name}
    if name == MAIN:
        commit.new["current-snapshot-id"] = NO_SNAPSHOT
        commit.head = None


_UPDATES: Mapping[str, Callable[[_Commit, Mapping[str, Any]], None]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "add-schema": _add_schema,
    "set-current-schema": _set_current_schema,
    "add-spec": _add_spec,
    "set-default-spec": _set_default_spec,
    "add-sort-order": _add_sort_order,
    "set-default-sort-order": _set_default_sort_order,
    "add-snapshot": _add_snapshot,
    "remove-snapshots": _remove_snapshots,
    "remove-schemas": _remove_schemas,
    "remove-partition-specs": _remove_specs,
    "set-snapshot-ref": _set_ref,
    "remove-snapshot-ref": _remove_ref,
}


# What the metadata says


def ref(metadata: Metadata, name: str) -> int | None:
    """Return the snapshot that a branch or tag is at; None where there is none of the name."""
    at = metadata.get("refs", {}).get(name)
    if at is not None:
        return int(at["snapshot-id"])
    current = metadata.get("current-snapshot-id", NO_SNAPSHOT)
    # As in `normalised`: metadata of version 1 may have no references.
    return int(current) if name == MAIN and current not in (None, NO_SNAPSHOT) else None


def snapshot_of(metadata: Metadata, number: int) -> Json | None:
    """Return a snapshot by its id; None where the table does not have it any more."""
    snapshots = metadata.get("snapshots", ())
    return next((one for one in snapshots if one["snapshot-id"] == number), None)


def schema_of(metadata: Metadata, number: int | None = None) -> Json:
    """Return a schema by its id, the current one by default."""
    wanted = metadata.get("current-schema-id", 0) if number is None else number
    schemas: Sequence[Json] = metadata["schemas"]
    return next(one for one in schemas if one.get("schema-id", 0) == wanted)


def spec_of(metadata: Metadata, number: int | None = None) -> Json:
    """Return a partition spec by its id, the default one by default."""
    wanted = metadata.get("default-spec-id", 0) if number is None else number
    specs: Sequence[Json] = metadata["partition-specs"]
    return next(one for one in specs if one["spec-id"] == wanted)


def highest_id(kind: Any) -> int:
    """Return the greatest field id within a type or a schema."""
    if isinstance(kind, str):
        return 0
    if kind["type"] == "struct":
        fields = kind["fields"]
        return max((max(int(one["id"]), highest_id(one["type"])) for one in fields), default=0)
    if kind["type"] == "list":
        return max(int(kind["element-id"]), highest_id(kind["element"]))
    ids = int(kind["key-id"]), int(kind["value-id"])
    return max(*ids, highest_id(kind["key"]), highest_id(kind["value"]))
