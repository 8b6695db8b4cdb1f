"""Files in rounds: the oldest first, each once, whatever comes in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload_jobs.contract.spec import RoundLimit
from lakeload_jobs.contract.state import Bookmark, Evidence
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.sources.paths.file_state import FileState


@dataclass
class Jobs:
    """Jobs of one pipeline, one after the other."""

    state: object = None
    noted: list[Evidence] = field(default_factory=list)

    def choose(self, listed: Sequence[FileState], limit: RoundLimit | None) -> Selection:
        def evidence(since: int) -> Sequence[Evidence]:
            return self.noted[since:]

        mark = Bookmark(self.state, self.state is None, len(self.noted), evidence)
        return choose_files(mark, "", listed, limit=limit)

    def load(self, listed: Sequence[FileState], limit: RoundLimit | None) -> Selection:
        found = self.choose(listed, limit)
        if found.files:
            self.state = found.state.after
            self.noted.append(found.evidence)
        return found


def file(name: str, modified: int, size: int = 10, etag: str | None = None) -> FileState:
    return FileState(f"landing/{name}", size, modified, etag)


FOUR = (file("a", 4), file("b", 1), file("c", 3), file("d", 1))


def names(files: Sequence[FileState]) -> str:
    return "".join(one.path[-1] for one in files)


def test_files_are_chosen_oldest_first_and_by_name_within_a_time() -> None:
    jobs, limit = Jobs(), RoundLimit(files=1)
    rounds = [names(jobs.load(FOUR, limit).files) for _ in range(5)]

    assert rounds == ["b", "d", "c", "a", ""]


@pytest.mark.parametrize(
    ("limit", "first"),
    [(RoundLimit(bytes=29), "bd"), (RoundLimit(bytes=30), "bcd"), (RoundLimit(bytes=1), "b")],
)
def test_bytes_limit_a_round_to_at_least_one_file(limit: RoundLimit, first: str) -> None:
    found = Jobs().choose(FOUR, limit)

    assert names(found.files) == first
    assert len(found.files) + len(found.later) == 4
    assert found.sentence == f"{len(first)} of 4 new files (0 known)"


def test_first_load_is_typed_by_all_files_and_later_ones_by_their_own() -> None:
    jobs, limit = Jobs(), RoundLimit(files=2)
    first, second = jobs.load(FOUR, limit), jobs.load(FOUR, limit)

    assert sorted(names(first.typed_by)) == ["a", "b", "c", "d"]
    assert names(second.typed_by) == names(second.files) == "ac"


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4), st.booleans()), min_size=1, max_size=14
    ),
    st.integers(1, 4),
    st.booleans(),
)
def test_each_file_is_loaded_once_however_rounds_and_arrivals_meet(
    arrivals: list[tuple[int, int, bool]], files: int, objects: bool
) -> None:
    """Each arrival is a folder, a time, often late or that of others, and whether a round comes."""
    jobs, limit = Jobs(), RoundLimit(files=files)
    listed: list[FileState] = []
    loaded: list[FileState] = []
    for number, (folder, modified, comes) in enumerate(arrivals):
        etag = f"{number}" if objects else None
        listed.append(file(f"{folder}/{number}", modified, etag=etag))
        if comes:
            loaded += jobs.load(listed, limit).files
    while found := jobs.load(listed, limit).files:
        assert len(found) <= files
        loaded += found

    assert sorted(loaded, key=str) == sorted(listed, key=str)
    assert len({one.path for one in loaded}) == len(loaded)
