"""Dataclasses ⇄ JSON: unions are told apart by their tag, strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import FilesInput


@dataclass(frozen=True)
class JdbcInput:
    url: str
    fetch_size: int = 1000
    type: Literal["JDBC"] = "JDBC"


@dataclass(frozen=True)
class StrictInput:
    type: Literal["JDBC", "ODBC"]
    url: str
    mode: Literal["READ"] = "READ"


@dataclass(frozen=True)
class TopicInput:
    type: Literal["KAFKA"]
    topic: str
    mode: Literal["READ"] = "READ"


@dataclass(frozen=True)
class Table:
    name: str
    input: FilesInput | StrictInput | TopicInput
    before: StrictInput | TopicInput | None = None
    more: tuple[StrictInput | TopicInput, ...] = ()


FILES = FilesInput("CSV", ("/a.csv",), {"header": "true"})


@pytest.mark.parametrize(
    "table",
    [
        Table("a", FILES),
        Table("a", StrictInput("ODBC", "u"), before=TopicInput("KAFKA", "t")),
        Table("a", TopicInput("KAFKA", "t"), more=(StrictInput("JDBC", "u"),)),
    ],
)
def test_each_member_of_a_union_comes_back_as_itself(table: Table) -> None:
    assert from_json(Table, to_json(table)) == table


def test_codec_untagged_input_reads_as_files() -> None:
    data = to_json(Table("a", FILES))
    del data["input"]["type"]

    assert from_json(Table, data) == Table("a", FILES)
    assert from_json(FilesInput, data["input"]) == FILES


@dataclass(frozen=True)
class TwoDefaults:
    either: FilesInput | JdbcInput


def test_codec_untagged_union_reads_as_its_first_untagged_member() -> None:
    for either in (FILES, JdbcInput("u")):
        assert from_json(TwoDefaults, to_json(TwoDefaults(either))) == TwoDefaults(either)
    with pytest.raises(CodecError, match="unknown key 'url' for FilesInput"):
        from_json(TwoDefaults, {"either": {"url": "u"}})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input": {"type": "FTP", "url": "u"}}, "$.input.type: 'FTP' is not one of"),
        ({"input": {"type": None, "url": "u"}}, "$.input.type: None is not one of"),
        ({"input": {"type": ["JDBC"], "url": "u"}}, "$.input.type: ['JDBC'] is not one of"),
        ({"input": {"type": "JDBC", "topic": "t"}}, "$.input: unknown key 'topic' for StrictInput"),
        ({"input": {"type": "KAFKA"}}, "$.input: 'topic' is missing for TopicInput"),
        ({"input": {"url": "u"}}, "$.input: unknown key 'url' for FilesInput"),
        ({"input": {"type": "JDBC", "url": 5}}, "$.input.url: expected str, found int"),
        ({"input": "FILES"}, "$.input: expected dict, found str"),
        ({"input": None}, "$.input: expected dict, found NoneType"),
        ({"before": {"url": "u"}}, "$.before: 'type' is missing, one of ('JDBC', 'ODBC', 'KAFKA')"),
        ({"more": [{"type": "KAFKA", "topic": 1}]}, "$.more[0].topic: expected str, found int"),
    ],
)
def test_codec_unknown_member_is_rejected_with_its_path(change: dict[str, Any], says: str) -> None:
    with pytest.raises(CodecError) as caught:
        from_json(Table, to_json(Table("a", FILES)) | change)

    assert says in str(caught.value)


@dataclass(frozen=True)
class Untagged:
    either: StrictInput | int


@dataclass(frozen=True)
class Alike:
    either: JdbcInput | StrictInput


@pytest.mark.parametrize("kind", [Untagged, Alike])
def test_codec_ambiguous_union_is_a_programming_error(kind: type) -> None:
    with pytest.raises(TypeError):
        from_json(kind, {"either": {"type": "JDBC", "url": "u"}})


@pytest.mark.parametrize(
    ("earlier", "today"), [("LOADED_CATALOG_STALE", "LOADED_CATALOG_OUT_OF_DATE")]
)
def test_codec_table_status_of_an_earlier_version_reads_as_todays(earlier: str, today: str) -> None:
    stored = to_json(TableResult("orders", "shop.orders", "LOADED")) | {"status": earlier}
    assert from_json(TableResult, stored).status == today


@pytest.mark.parametrize(
    ("earlier", "today"), [("NOT_POSSIBLE", "UNSUPPORTED"), ("LOST_RACE", "CONFLICT")]
)
def test_codec_step_status_of_an_earlier_version_reads_as_todays(earlier: str, today: str) -> None:
    stored = to_json(StepResult("compact", "DONE")) | {"status": earlier}
    assert from_json(StepResult, stored).status == today
