"""Records of JSON, compared with Python's `json`, in blocks of any size and parts of any length."""

from __future__ import annotations

import io
import json as json_module
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.files.formats.json import records as json_records_of
from lakeload_jobs.sources.files.formats.json.records import (
    MAX_DEPTH,
    BrokenFile,
    LineBlocks,
    ValueBlocks,
    WrappedBlocks,
    line_start,
    problem_of,
    read_block,
)
from lakeload_jobs.sources.files.text.batches import RecordTooLong
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.corpus.oracle import Refused, json_records
from tests.environments import many
from tests.text_tables import json_table
from tests.unit.sources.files.formats.csv.test_table import here
from tests.unit.sources.files.formats.json import json_texts as json_texts

Found = tuple[list[tuple[int, dict[str, Any]]], list[int]]
"""The records with their lines, and the lines of broken ones."""


def _read(blocks: LineBlocks | ValueBlocks | WrappedBlocks) -> Found:
    good: list[tuple[int, dict[str, Any]]] = []
    bad: list[int] = []
    try:
        for block in blocks:
            records = read_block(block)
            bad += [record.line for record in records.bad]
            members = records.members
            columns = {name: members.column(name).to_pylist() for name in members.names}
            for row in range(members.objects):
                values = {
                    name: _stored(column[row])
                    for name, column in columns.items()
                    if column[row] is not None
                }
                good.append((records.line(row), values))
    except BrokenFile as error:
        bad.append(error.line)
    return good, bad


def _stored(raw: bytes) -> Any:
    records = json_records(b'{"x":' + raw + b"}")
    assert not isinstance(records, Refused)
    return records[0]["x"]


def _without_nulls(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in record.items() if value is not None} for record in records
    ]


def _lines_by_oracle(content: bytes) -> Found:
    good: list[tuple[int, dict[str, Any]]] = []
    bad: list[int] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        records = json_records(line)
        if not line.strip(b" \t\r\n"):
            continue
        if isinstance(records, Refused) or len(records) != 1 or line.strip(b" \t\r")[:1] != b"{":
            bad.append(number)
        else:
            good.append((number, _without_nulls(records)[0]))
    return good, bad


def _cases(seed: int, number: int, *, lines: bool) -> Any:
    random_ = random.Random(seed)  # noqa: S311
    for _ in range(number):
        records = [json_texts.record(random_) for _ in range(random_.randint(0, 6))]
        content = json_texts.written(random_, records, lines=lines).encode()
        if random_.random() < 0.6:
            content = json_texts.mutated(random_, content)
        if not content.startswith(b"\xef\xbb\xbf"):
            yield content, random_.choice([1, 3, 7, 20, 64, 1 << 19])


@pytest.mark.parametrize("seed", range(2))
def test_lines_are_what_python_reads_or_broken(seed: int) -> None:
    for content, size in _cases(seed, many(100), lines=True):
        good, bad = _read(LineBlocks(io.BytesIO(content), size=size))
        assert (good, sorted(bad)) == _lines_by_oracle(content), content


@pytest.mark.parametrize("seed", range(2))
def test_values_and_lists_are_what_python_reads_or_broken(seed: int) -> None:
    for content, size in _cases(100 + seed, many(100), lines=False):
        good, bad = _read(ValueBlocks(io.BytesIO(content), size=size, least=1))
        records = json_records(content)
        if isinstance(records, Refused):
            assert bad, content
        else:
            expected = _without_nulls(records)
            assert ([record for _, record in good], bad) == (expected, []), content


def test_parts_of_any_length_have_the_records_of_the_whole() -> None:
    random_ = random.Random(7)  # noqa: S311
    for _ in range(25):
        records = [json_texts.record(random_) for _ in range(8)]
        content = json_texts.written(random_, records, lines=True).encode()
        whole = _read(LineBlocks(io.BytesIO(content)))[0]
        cuts = sorted(random_.sample(range(1, len(content)), 3))
        found: list[tuple[int, dict[str, Any]]] = []
        end, line = 0, 1
        for start, stop in zip([0, *cuts], [*cuts, None], strict=True):
            begins = line_start(io.BytesIO(content[start - 1 :]), start) if start else 0
            assert begins == end, "each part begins where the one before ends"
            size = random_.choice([1, 9, 50, 1 << 19])
            stream = io.BytesIO(content[begins:])
            blocks = LineBlocks(stream, begins, stop, line, size)
            found += _read(blocks)[0]
            end, line = blocks.end, blocks.line
        assert found == whole


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('{"a": 1', "it is not JSON: expecting ',' delimiter at character 8"),
        ('{"a": 1, "a": 2}', "it has the key `a` twice"),
        ('{"b": {"a": 1, "\\u0061": 2}}', "it has the key `a` twice"),
        ('{"a": NaN}', "`NaN` is not JSON"),
        ('{"a": "\\ud800"}', "a text in it has half of a surrogate pair"),
        ("[1]", "it is a list, and an object is expected"),
        ("null", "it is null, and an object is expected"),
        ('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "more than 500 deep"),
        ('{"a": ' + "[" * 40_000 + "]" * 40_000 + "}", "more than 500 deep"),
    ],
)
def test_broken_json_record_has_its_reason(record: str, problem: str) -> None:
    assert problem in problem_of(record.encode())
    (block,) = LineBlocks(io.BytesIO(b'{"a": 1}\n' + record.encode() + b'\n{"a": 2}\n'))
    records = read_block(block)
    assert records.members.column("a").to_pylist() == [b"1", b"2"]
    assert [(bad.line, bad.reason) for bad in records.bad] == [(2, problem_of(record.encode()))]


def test_nesting_as_deep_as_allowed_is_read() -> None:
    lists = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    (block,) = LineBlocks(io.BytesIO(f'{{"a": {lists}}}\n'.encode()))

    assert read_block(block).members.column("a").to_pylist() == [lists.encode()]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ('[{"v": 1}]\n{"v": 2}', 2, "something follows the end of the list"),
        ('[{"v": 1},\n{"v": 2}', 2, "the list in the file has no end"),
        ('[{"v": 1}\n{"v": 2}]', 2, "two elements of the list have no comma between them"),
        ('[{"v": 1},\n5, {"v": 2}]', 2, "an element of the list is not an object"),
        ('[{"v": 1}, ]', 1, "no object follows the last comma of the list"),
        ('{"v": 1}\n]', 2, "`]` closes nothing"),
        ('{"v": 1}\n' + "[" * 40_000, 1, "its values are nested more than 500 deep"),
        ("]" * 40_000, 1, "its brackets do not match"),
        ('{"v": 1}\n{"v": {}', 2, "it is not JSON: expecting ',' delimiter at character 9"),
    ],
)
def test_broken_json_file_has_its_position(content: str, line: int, what: str) -> None:
    with pytest.raises(BrokenFile) as broken:
        list(map(read_block, ValueBlocks(io.BytesIO(content.encode()))))
    assert (broken.value.line, str(broken.value)) == (line, what)


@pytest.mark.parametrize("blocks", [LineBlocks, ValueBlocks])
def test_json_record_without_an_end_stops_at_the_limit(
    blocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records_of, "MAX_RECORD", 1000)
    stream = io.BytesIO(b'{"a": 1}\n{"a": "' + b"x" * 200_000)

    with pytest.raises(RecordTooLong) as failed:
        list(blocks(stream, size=100))
    assert failed.value.line == 2


def test_a_wrapped_list_that_is_too_long_for_a_record_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records_of, "MAX_RECORD", 100_000)
    path = tmp_path / "a.json"
    path.write_text('{"a": {"items": [' + '{"id": 1},' * 80_000 + '{"id": 2}]}}')
    files = tuple(local_files([str(path)]))

    with pytest.raises(LoadFailed, match="line 1 is longer than") as failed:
        json_table(files, {}).split(here)
    line = '`records: "$.a.items[*]"`'
    assert failed.value.hint == f"its list is loaded with the reader option {line}"
    table = json_table(files, {"records": "$.a.items[*]"}).split(here)
    assert table.splits.counts == (80_001,)


@pytest.mark.parametrize("size", [1, 5, 1 << 16])
@pytest.mark.parametrize("indent", [None, 1])
def test_wrapped_records_are_those_of_the_list(size: int, indent: int | None) -> None:
    random_ = random.Random(9)  # noqa: S311
    records = [json_texts.record(random_) for _ in range(5)]
    wrapped = {"n": [1, {"data": 5}], "x": {'da"ta': records, "data": []}, "next": {"p": "]}"}}
    content = json_module.dumps(wrapped, indent=indent).encode()

    blocks = WrappedBlocks(io.BytesIO(content), ("x", 'da"ta'), size=size, least=size)
    good, bad = _read(blocks)

    expected = json_records(json_module.dumps(records).encode())
    assert not isinstance(expected, Refused)
    assert ([record for _, record in good], bad) == (_without_nulls(expected), [])
    assert blocks.end == len(content)


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ('{"a": {\n"c": []}}', 1, "`records`: the file has no `$.a.b`"),
        ('{"a": {"b": {}}}', 1, "`records`: `$.a.b` is not a list"),
        ('{"a":\n 5}', 1, "`records`: `$.a` is not an object"),
        ('[{"a": {"b": []}}]', 1, "the file is not an object"),
        ('{"a": {"b": [{}\n {}]}}', 2, "two elements of the list have no comma between them"),
        (
            '{"a": {"b": [{}], "b": 1}}',
            1,
            "the text around the records is not valid JSON: it has the key",
        ),
        (
            '{"a": {"b": [{}\n]}, }',
            2,
            "the text around the records is not valid JSON: it is not JSON",
        ),
        ('{"a": {"b": [{}]', 1, "the text around the records is not valid JSON: it is not JSON"),
        ('{"a": {"b": [{}', 1, "the list in the file has no end"),
    ],
)
def test_missing_wrapped_records_name_the_path(content: str, line: int, what: str) -> None:
    with pytest.raises(BrokenFile) as broken:
        list(map(read_block, WrappedBlocks(io.BytesIO(content.encode()), ("a", "b"))))
    assert broken.value.line == line
    assert str(broken.value).startswith(what)
