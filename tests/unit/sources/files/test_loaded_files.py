"""Loaded files: each version once, whatever the clocks say, and a state of bounded size."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lakeload_jobs.sources.files import bookmark as loaded_files
from lakeload_jobs.sources.files.bookmark import (
    MAX_FOLDERS,
    MAX_FOLDERS_BYTES,
    Comparison,
    FilesState,
    Identity,
    advance,
    compare,
    identity,
    read_state,
    resolve,
    state_json,
)
from lakeload_jobs.sources.paths.file_state import FileState
from tests.environments import many


@dataclass
class Pipeline:
    """One incremental source, as a job keeps it: the state, and the records it can look up."""

    state: FilesState | None = None
    records: list[FileState] = field(default_factory=list)
    looked_up: int = 0

    def run(self, *listed: FileState, reload: bool = False) -> tuple[FileState, ...]:
        """Load what is new, and return it."""
        compared = compare(self.state, listed)
        known = self.records if compared.unclear else None
        self.looked_up += known is not None
        new = resolve(compared, known or ()).new
        if not new and not reload:
            return ()
        after = advance(self.state, listed, new=len(new), since=1, known=known)
        self.state = read_state(json.loads(json.dumps(state_json(after))))
        loaded = tuple(listed) if reload else new
        self.records += loaded
        return loaded


def local(path: str, modified: int = 1, size: int = 1) -> FileState:
    return FileState(path, size, modified)


def s3(path: str, etag: str, modified: int = 1, size: int = 1) -> FileState:
    return FileState(f"s3://bucket/{path}", size, modified, etag)


def test_first_run_loads_all_and_next_run_nothing_without_lookups() -> None:
    pipeline = Pipeline()
    files = [local("a/1.csv"), local("a/2.csv", 5), local("b/1.csv", 3)]
    assert len(pipeline.run(*files)) == 3
    assert pipeline.run(*files) == ()
    assert pipeline.looked_up == 0


def test_files_after_the_watermark_are_new_without_lookups() -> None:
    pipeline = Pipeline()
    first = [local(f"a/{number}.csv", number) for number in range(5)]
    pipeline.run(*first)
    later = local("a/later.csv", 9)
    elsewhere = local("c/new.csv", 9)
    assert pipeline.run(*first, later, elsewhere) == (later, elsewhere)
    assert pipeline.looked_up == 0


def test_a_late_file_with_an_older_time_is_loaded() -> None:
    pipeline = Pipeline()
    first = [local("a/1.csv", 10), local("a/2.csv", 20)]
    pipeline.run(*first)
    late = local("a/late.csv", 15)
    assert pipeline.run(*first, late) == (late,)
    assert pipeline.run(*first, late) == ()
    assert pipeline.looked_up == 1


def test_file_at_the_second_of_the_watermark_is_loaded() -> None:
    pipeline = Pipeline()
    pipeline.run(s3("a/1", "e1", 100))
    assert pipeline.run(s3("a/1", "e1", 100), s3("a/2", "e2", 100)) == (s3("a/2", "e2", 100),)


def test_rewritten_file_is_loaded_again_with_a_warning() -> None:
    pipeline = Pipeline()
    pipeline.run(local("a/1.csv", 1), local("a/2.csv", 1))
    again = local("a/1.csv", 7, size=9)
    compared = compare(pipeline.state, [again, local("a/2.csv", 1)])
    resolved = resolve(compared, pipeline.records)
    assert resolved.new == resolved.again == (again,)


def test_the_same_content_put_again_in_s3_is_not_loaded_again() -> None:
    pipeline = Pipeline()
    pipeline.run(s3("a/1", "e1", 1), s3("a/2", "e2", 2))
    assert pipeline.run(s3("a/1", "e1", 50), s3("a/2", "e2", 2)) == ()


@pytest.mark.parametrize("time", [1, 9], ids=["older", "younger"])
@pytest.mark.parametrize("etag", ["e1", None], ids=["s3", "local"])
def test_restored_file_is_known(etag: str | None, time: int) -> None:
    pipeline = Pipeline()
    gone = FileState("a/1", 1, time, etag)
    other, newer = FileState("a/2", 1, 2, etag and "e2"), FileState("a/3", 1, 5, etag and "e3")
    pipeline.run(gone, other)
    assert pipeline.run(other, newer) == (newer,)
    back = replace(gone, modified=20) if etag else gone
    assert pipeline.run(back, other, newer) == ()


@pytest.mark.parametrize("etag", ["e1", None], ids=["s3", "local"])
def test_restored_file_is_known_after_its_folder_got_a_digest(
    etag: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_files, "MAX_FOLDERS", 1)
    pipeline = Pipeline()
    gone, stays = FileState("b/1", 1, 5, etag), FileState("b/2", 1, 1, etag and "e2")
    recent, late = FileState("a/1", 1, 9, etag and "e3"), FileState("b/3", 1, 3, etag and "e4")
    pipeline.run(gone, stays, recent)
    assert pipeline.run(stays, late) == (late,)
    assert pipeline.run(replace(gone, modified=20) if etag else gone, stays, late) == ()


def test_restored_folder_is_known() -> None:
    pipeline = Pipeline()
    old, new = s3("old/1", "e1", 1), s3("new/1", "e2", 2)
    pipeline.run(old)
    assert pipeline.run(new) == (new,)
    assert pipeline.run(replace(old, modified=9), new) == ()


BACK = [
    # (what is listed in each run, the file that is put again at the end)
    pytest.param(["a1 a2", "a2 a3", "a2 a3 b4"], "a1", id="its folder lost its fold"),
    pytest.param(["a5 b1", "a5 a6"], "b1", id="its folder never had one and is empty"),
    pytest.param(["a5 b1", "a5 a6", "a5 a6 a7"], "b1", id="a quick run came between"),
    pytest.param(["a5 b1", "a5 c2"], "b1", id="another file took its place"),
]


@pytest.mark.parametrize("folds", [0, 1, 2])
@pytest.mark.parametrize(("runs", "back"), BACK)
def test_object_uploaded_again_is_known_after_its_folder_got_a_digest(
    runs: list[str], back: str, folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_files, "MAX_FOLDERS", folds)
    pipeline = Pipeline()

    def listed(names: str) -> list[FileState]:
        return [s3(f"{name[0]}/{name[1]}", name, int(name[1])) for name in names.split()]

    for names in runs:
        assert pipeline.run(*listed(names))
    again = replace(listed(back)[0], modified=20)
    assert pipeline.run(*listed(runs[-1]), again) == ()


def test_the_same_name_in_two_folders_is_two_files() -> None:
    pipeline = Pipeline()
    pipeline.run(local("a/x.csv", 5))
    assert pipeline.run(local("a/x.csv", 5), local("b/x.csv", 5)) == (local("b/x.csv", 5),)


def test_reload_loads_all_and_the_next_run_nothing() -> None:
    pipeline = Pipeline()
    files = [local("a/1.csv"), local("a/2.csv", 2)]
    pipeline.run(*files)
    assert pipeline.run(*files, reload=True) == tuple(files)
    assert pipeline.run(*files) == ()
    assert pipeline.state is not None
    assert pipeline.state.loaded == 2


def test_names_that_are_no_utf_8_are_names() -> None:
    pipeline = Pipeline()
    odd = local("a/\udcff.csv")
    pipeline.run(odd)
    assert pipeline.run(odd) == ()


def test_a_state_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not the state of a source of files"):
        read_state({"cursor": 7})
    with pytest.raises(ValueError, match="KAFKA"):
        read_state(state_json(FilesState(1)) | {"kind": "KAFKA"})


def test_many_folders_share_a_digest_and_new_files_need_no_lookups() -> None:
    pipeline = Pipeline()
    first = [local(f"day={day:05}/x.csv", day) for day in range(MAX_FOLDERS * 3)]
    pipeline.run(*first)
    assert pipeline.state is not None
    assert len(pipeline.state.folders) == MAX_FOLDERS
    assert f"day={MAX_FOLDERS * 3 - 1:05}" in pipeline.state.folders
    later = local("day=99999/x.csv", MAX_FOLDERS * 4)
    assert pipeline.run(*first, later) == (later,)
    assert pipeline.looked_up == 0
    assert "day=99999" in pipeline.state.folders


@pytest.mark.parametrize("files", [1, 4_000])
@pytest.mark.parametrize("name", ["d", "a-folder-with-a-long-name-" * 8])
def test_the_size_of_the_state_depends_on_neither_files_nor_folders(files: int, name: str) -> None:
    listed = [local(f"{name}/{n}/{n}.csv", 1_700_000_000_000_000_000 + n) for n in range(files)]
    state = advance(None, listed, new=files, since=1)
    assert len(json.dumps(state_json(state))) <= MAX_FOLDERS_BYTES + 512


def test_one_folder_with_20_000_files_has_a_state_of_some_hundred_bytes() -> None:
    listed = [local(f"landing/{number}.csv", number) for number in range(20_000)]
    state = advance(None, listed, new=len(listed), since=1)
    assert len(json.dumps(state_json(state))) < 400
    assert compare(state, listed) == Comparison((), ())


NAMES = ["a/1", "a/2", "b/1", "b/2", "c/1"]
TIMES = st.integers(0, 4)


class Folder(RuleBasedStateMachine):
    """Files come, change, go and come back in any order; every version is loaded exactly once."""

    @initialize(etags=st.booleans(), folds=st.integers(0, 2))
    def begin(self, etags: bool, folds: int) -> None:
        self.etags = etags
        self.bound = patch.object(loaded_files, "MAX_FOLDERS", folds)
        self.bound.start()
        self.pipeline = Pipeline()
        self.present: dict[str, FileState] = {}
        self.past: dict[FileState, None] = {}
        self.expected: set[Identity] = set()

    @rule(data=st.data(), then_run=st.booleans())
    def write(self, data: st.DataObject, then_run: bool) -> None:
        path, version = data.draw(st.sampled_from(NAMES)), data.draw(st.integers(1, 2))
        self.put(FileState(path, version, data.draw(TIMES), f"e{version}" if self.etags else None))
        self.run_if(then_run)

    @precondition(lambda self: self.past)
    @rule(data=st.data(), then_run=st.booleans())
    def bring_back(self, data: st.DataObject, then_run: bool) -> None:
        """Locally with its old time, as `mv` does; in S3 with a new one, as only a PUT can."""
        file = data.draw(st.sampled_from(list(self.past)))
        self.put(replace(file, modified=data.draw(TIMES)) if self.etags else file)
        self.run_if(then_run)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), then_run=st.booleans())
    def remove(self, data: st.DataObject, then_run: bool) -> None:
        folder = data.draw(st.sampled_from(sorted(self.present)))[: data.draw(st.integers(1, 3))]
        for path in [path for path in self.present if path.startswith(folder)]:
            self.past[self.present.pop(path)] = None
        self.run_if(then_run)

    @rule()
    def reload(self) -> None:
        loaded = self.pipeline.run(*self.present.values(), reload=True)
        assert sorted(loaded, key=str) == sorted(self.present.values(), key=str)
        self.expected |= set(map(identity, loaded))

    def run_if(self, wanted: bool) -> None:
        if not wanted:
            return
        listed = tuple(self.present.values())
        new = set(map(identity, listed)) - self.expected
        assert sorted(map(identity, self.pipeline.run(*listed))) == sorted(new)
        self.expected |= new
        if self.pipeline.state is not None:
            assert self.pipeline.state.loaded == len(self.expected)

    def put(self, file: FileState) -> None:
        if before := self.present.get(file.path):
            self.past[before] = None
        self.present[file.path] = file

    def teardown(self) -> None:
        if hasattr(self, "bound"):
            self.bound.stop()


TestFolder = Folder.TestCase
TestFolder.settings = settings(max_examples=many(60), stateful_step_count=30, deadline=None)
