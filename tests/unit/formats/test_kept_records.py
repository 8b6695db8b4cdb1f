"""What was written by each lakeload so far is read by this one.

`tests/cases/kept/` holds objects of logs and properties of tables in folders named by the commit
whose code wrote them, one for each commit at which a shape changed: 227677c is the last with the
first shape of records and checkpoints, 67f4b59 the first with Glue's partitions and source files,
7dc0885 with claims of targets and with settings in checkpoints, 5208ecd with the state of source
files, 9d9be6b with Iceberg's state and lists of files, 3ac32d8 with hashes of files and the last
whose checkpoints have no digest. They are never written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import LoadFailed, NewerFormat
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.file_ledger import Ledger, LedgerEntry
from lakeload_jobs.formats.iceberg.rules.facts import (
    JOBS,
    PROPERTIES_FORMAT,
    PipelineState,
    TableFacts,
    remembered_jobs,
)
from lakeload_jobs.formats.iceberg.rules.rejects import pending_rejects
from lakeload_jobs.formats.parquet.log.commit_log import Checkpoint
from lakeload_jobs.formats.parquet.log.records import (
    CatMarker,
    CleanMarker,
    EndMarker,
    LoadRecord,
    LogObject,
    decode,
    decode_record,
)
from lakeload_jobs.formats.parquet.log.target_claims import Binding
from lakeload_jobs.sources.databases import bookmark as databases
from lakeload_jobs.sources.databases.engines.postgres.xids import read_seen_xids, read_xmin_state
from lakeload_jobs.sources.databases.keys import remembered
from lakeload_jobs.sources.databases.seen import read_seen
from lakeload_jobs.sources.files.bookmark import compare, read_state
from lakeload_jobs.sources.files.known_files import files_of, known_files
from lakeload_jobs.storage.objects import Objects

KEPT = Path(__file__).parents[2] / "cases" / "kept"
FILES = sorted(path for path in KEPT.glob("*/*") if path.is_file())
KINDS: dict[str, type[LogObject]] = {
    "checkpoint": Checkpoint,
    "binding": Binding,
    "outcome": EndMarker,
    "voided": CleanMarker,
    "catalog": CatMarker,
}


class Bucket:
    """What lists of loaded files are read from."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self._bodies = bodies

    def get(self, key: str) -> bytes | None:
        return self._bodies.get(key)

    def url(self, key: str) -> str:
        return f"s3://lake/{key}"


FOLDER = "landing/_lakeload/web/orders/ledger/shop%2F2026/"


def ledger(bodies: dict[str, bytes]) -> Ledger:
    """Return the lists of the table that the kept ones are of."""
    location = TableLocation("landing", "web", "orders")
    return Ledger(cast(Objects, Bucket(bodies)), location, "shop/2026")


def kind_of(path: Path) -> str:
    return path.name.partition(".")[0].partition("-")[0]


def read(path: Path) -> Any:
    """Read a file as the log, the ledger or the table's properties are read."""
    kind, data = kind_of(path), path.read_bytes()
    if kind in ("load", "fence"):
        return decode_record(data, path.name)
    if kind == "ledger":
        return ledger({FOLDER + path.name: data}).entry(FOLDER + path.name)
    if kind == "state":
        return PipelineState.from_property(data.decode(errors="replace"), path.name)
    return decode(KINDS[kind], data, path.name)


def lost(before: Any, after: Any, where: str = "$") -> Iterator[str]:
    """Yield where `after` has not what `before` has; it may have more."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{where}[{number}]")
    elif before != after:
        yield f"{where}: {before!r} became {after!r}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_kept_records_are_read_completely(path: Path) -> None:
    found = read(path)

    document = json.loads(path.read_bytes())
    if kind_of(path) not in ("ledger", "state"):
        assert (document.pop("format"), document.pop("kind")) == (1, found.KIND)
    after = json.loads(found.to_property()) if kind_of(path) == "state" else to_json(found)
    assert list(lost(document, json.loads(json.dumps(after)))) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_kept_records_of_a_newer_format_are_told_as_such(path: Path, tmp_path: Path) -> None:
    document = json.loads(path.read_bytes())
    number = "version" if kind_of(path) == "ledger" else "format"
    newer = tmp_path / path.name
    newer.write_text(json.dumps({**document, number: 9, "a key of then": 1}))

    with pytest.raises(NewerFormat, match="was written by a newer lakeload") as caught:
        read(newer)

    # Loading all files again would double the rows of a table that rows are appended to.
    assert "upgrade" in (caught.value.hint or "")
    assert "reload" not in (caught.value.hint or "")


def newer_source_states() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what sources keep, as a newer lakeload may write it, and what reads it."""
    folder = {"folder": "", "names": [], "sizes": [], "modified": [], "kinds": [], "format": 2}
    yield "files", lambda: list(files_of([folder]))
    yield "state of files", lambda: read_state({"kind": "FILES", "since": 1, "x": 1, "format": 2})
    yield "cursor", lambda: databases.read_state({"cursor": "id", "upto": [1], "format": 2})
    yield "xmin", lambda: read_xmin_state({"cursor": "xmin", "ids": [1], "format": 2}, "public.t")
    read = JdbcInput("POSTGRESQL", "localhost", 5432, "shop", "public", "t", key=("id",))
    yield "key", lambda: remembered(read, {"key": {"columns": ["id"]}, "format": 2})
    noted = [Evidence(({"window": {"rows": "", "format": 2}},))]
    yield "rows", lambda: read_seen(noted)
    ids = [Evidence(({"ranges": [[3, 7]], "format": 2},))]
    yield "transactions", lambda: read_seen_xids(ids, "public.t")
    properties = {PROPERTIES_FORMAT: "2", JOBS: "of another form"}
    table = TableFacts("s3://lake/t", "u", properties, {}, {}, {}, frozenset(), (), 2, None)
    yield "jobs", lambda: remembered_jobs(table)
    side = replace(table, properties={"lakeload.pending.b": '{"branches": [], "format": 2}'})
    yield "pending", lambda: list(pending_rejects(side))


@pytest.mark.parametrize(("name", "reader"), [*newer_source_states()])
def test_state_of_a_newer_source_is_told_as_such(name: str, reader: Callable[[], object]) -> None:
    with pytest.raises(NewerFormat, match="format 2, but this one reads formats up to 1"):
        reader()


def test_lost_list_of_loaded_files_is_no_reason_to_double_rows() -> None:
    with pytest.raises(LoadFailed, match="it is gone") as caught:
        ledger({}).entry(FOLDER + "ledger.json")
    assert "--reload" not in (caught.value.hint or "")


def test_every_kind_of_object_is_kept() -> None:
    assert {kind_of(path) for path in FILES} == {"load", "fence", "ledger", "state", *KINDS}
    assert len({path.parent for path in FILES}) == 6


def states() -> list[Any]:
    """Every state of a source of files that any of them holds."""
    found: list[Any] = []
    for path in FILES:
        document = json.loads(path.read_bytes())
        state = document.get("state") or {}
        found += [state, state.get("before"), state.get("after")]
    return [state for state in found if isinstance(state, dict) and state.get("kind") == "FILES"]


def test_the_state_of_source_files_is_read() -> None:
    assert len(states()) > 5
    for state in states():
        found = read_state(state)
        assert found is not None
        assert list(lost(state, to_json(found))) == []


def test_the_files_of_a_first_load_are_known_by_its_state() -> None:
    """The hashes of before are computed as before: nothing is loaded twice."""
    seen = 0
    for path in FILES:
        record = read(path)
        if isinstance(record, LoadRecord) and record.inputs and record.state is not None:
            if record.state.before is not None:
                continue
            files = tuple(files_of(record.inputs))
            compared = compare(read_state(record.state.after), files)
            assert (compared.new, compared.unclear) == ((), ())
            seen += 1
        elif isinstance(record, PipelineState) and record.state is not None:
            (first,) = (path for path in FILES if path.name == "ledger-1.json")
            entry = read(first)
            assert isinstance(entry, LedgerEntry)
            compared = compare(read_state(record.state), files_of(entry.inputs))
            assert (compared.new, compared.unclear) == ((), ())
            seen += 1
    assert seen > 2


def test_lists_of_loaded_files_are_followed_to_the_first() -> None:
    kept = sorted((KEPT / "9d9be6b").glob("ledger-*"))
    first, second = (path.read_bytes() for path in kept)
    newest = FOLDER + "newest.json"

    noted = ledger({json.loads(second)["previous"]: first, newest: second}).evidence(newest, 1)

    assert [len(list(files_of(one.inputs))) for one in noted] == [2, 1]
    names = sorted(file.path for file in known_files(noted).files)
    assert names == ["data/a.csv", "data/c.csv", "s3://raw/orders/b.csv"]
