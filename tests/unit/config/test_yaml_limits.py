"""Hostile documents are refused quickly, with a place and a reason."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lakeload.config.problems import InvalidDocuments
from lakeload.documents.load import check, load_pipeline
from tests.environments import many
from tests.unit.documents.documents import DESTINATION, PIPELINE, problems_of

HOSTILE = {
    "ten megabytes": (b"a: " + b"x" * 10_000_000, "too-large"),
    "endless device": (None, "too-large"),
    "a million brackets": ("[" * many(1_000_000) + "\n", "too-deep"),
    "a million braces": ("{" * many(1_000_000) + "\n", "too-deep"),
    "many values": ("a: [" + "x," * 110_000 + "]\n", "too-large"),
    "an unclosed quote": ("a: '" + "x" * many(1_000_000), "syntax"),
    "an unclosed quote below a secret": ("token: '" + "a:" * many(300_000), "syntax"),
    "many references": (f"{DESTINATION}prefix: '{'${' * many(400_000)}'\n", "environment"),
    "nested references": (
        f"{DESTINATION}prefix: '{'${A:-' * many(150_000)}'\n",
        "environment",
    ),
    "many duplicates": (DESTINATION + "region: x\n" * many(45_000), "duplicate-key"),
    "many unknown keys": (
        DESTINATION + "".join(f"k{i}: 1\n" for i in range(many(40_000))),
        "unknown-key",
    ),
    "many user names": (
        f"{DESTINATION}endpoint_url: '{'http://a:b@' * many(90_000)}'\n",
        "secret-literal",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_within_seconds(name: str, tmp_path: Path) -> None:
    text, code = HOSTILE[name]
    started = time.process_time()
    if text is None:
        path = tmp_path / "large"
        with path.open("wb") as file:
            file.truncate(1 << 40)
        found = check([path], {})
    else:
        found = problems_of(tmp_path, text)

    assert time.process_time() - started < 10
    assert code in {problem.code for problem in found}
    assert len(found) <= 600
    assert all(len(snippet.text) < 5_000 for problem in found for snippet in problem.snippets)


def test_thousands_of_tables_with_thousands_of_columns_are_read(tmp_path: Path) -> None:
    columns = ", ".join(f"c{i}" for i in range(many(30_000)))
    tables = "".join(f"  - {{table: t{i}, path: a.csv}}\n" for i in range(many(5_000)))
    wide = f"  - {{table: wide, path: a.csv, columns: {{include: [{columns}]}}}}\n"
    started = time.process_time()

    assert problems_of(tmp_path, f"{PIPELINE}tables:\n{tables}{wide}") == []
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "not-a-mapping"),
        (b"\xef\xbb\xbf# only a comment", "not-a-mapping"),
        (b"---\n", "not-a-mapping"),
        (b"{}", "not-a-mapping"),
        (b"~", "not-a-mapping"),
        (b"text", "not-a-mapping"),
        (b"[1, 2]", "not-a-mapping"),
        (b"\xff\xfeb\x00", "not-utf-8"),
        (b"a: \x00", "character"),
        (b"%YAML 9.9\n---\na: 1", "syntax"),
        (b"a: 1\n--- \nb: 1", "several-documents"),
        (b"a: &x 1\nb: &x 2", "wrong-kind"),
        (b"? {a: 1}\n: 2\nbucket: x", "key"),
    ],
)
def test_yaml_that_is_no_mapping_is_rejected_by_kind(
    text: bytes, code: str, tmp_path: Path
) -> None:
    assert code in {problem.code for problem in problems_of(tmp_path, text)}


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + DESTINATION.replace("\n", "\r\n").encode()

    assert problems_of(tmp_path, text) == []


def test_merge_keys_inherit_and_own_keys_win(tmp_path: Path) -> None:
    text = f"""{PIPELINE}tables:
  - &base {{table: a, path: a.csv, where: x = 1}}
  - <<: *base
    table: b
  - <<: [{{table: c}}, *base]
"""
    assert problems_of(tmp_path, text) == []


@pytest.mark.parametrize("name", ["", "folder", "missing.yml", "missing/also.yml"])
def test_unreadable_file_is_one_problem_without_a_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    [problem] = check([tmp_path / name], {})

    assert (problem.code, problem.line) == ("unreadable", 0)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("shop", "did you mean `{folder}/shop/pipeline.yml`?"),
        ("shpo/pipeline.yml", "did you mean `shop`? the folder `{folder}/shpo` does not exist"),
        ("other/pipeline.yml", "the folder `{folder}/other` does not exist"),
        ("shop/pipline.yml", "did you mean `pipeline.yml`?"),
        ("shop/destination.yml", "did you mean `{folder}/shop/pipeline.yml`? `lakeload schema "),
    ],
)
def test_slip_in_the_path_of_a_pipeline_is_told_with_the_nearest_one(
    name: str, hint: str, tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "pipeline.yml").write_text("version: 1\n")
    (shop / "destination.yml").write_text("version: 1\nbucket: b\nregion: us-east-1\n")
    with pytest.raises(InvalidDocuments) as raised:
        load_pipeline(tmp_path / name, {})

    [problem] = raised.value.problems
    assert str(problem.hint).startswith(hint.format(folder=tmp_path))


@pytest.mark.parametrize("name", ["landing", "orders.csv", "orders.csv.gz", "orders.parquet"])
def test_data_in_the_place_of_a_pipeline_names_the_command_that_writes_one(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if "." in name:
        path.write_bytes(b"PAR1\xff" if name.endswith("parquet") else b"id,a\n1,2\n")
    else:
        path.mkdir()
    with pytest.raises(InvalidDocuments) as raised:
        load_pipeline(path, {})

    [problem] = raised.value.problems
    assert f"`lakeload init --path {path}`" in str(problem.hint)
