"""Files never share a name."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import assume, given
from hypothesis import strategies as st

from lakeload_jobs.core.file_names import (
    FILE_SUFFIX,
    MAX_FILE_NAME,
    pattern_problems,
    render_file_name,
)

NOW = datetime(2024, 1, 15, 10, 30, 59, tzinfo=UTC)
UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

# Short job ids and few numbers, so that names which can meet do.
JOB_IDS = st.text("01a-", min_size=1, max_size=7)
SEQS = st.one_of(st.integers(0, 12), st.integers(99_990, 100_110), st.integers(0, 10**7))
FILLERS = ["{date}", "{timestamp}", "-", "0", "1", "x", "."]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """A valid pattern without `{uuid}`: job id and number in either order among fillers."""
    filler = st.lists(st.sampled_from(FILLERS), max_size=2).map("".join)
    first, second = draw(st.permutations(["{supa_job_id}", "{seq}"]))
    between = draw(st.sampled_from(["-", "x", "1-", "-1", "{date}", "{timestamp}", "."]))
    return str(draw(st.sampled_from(["", "x", "1"]))) + first + between + second + draw(filler)


def _name(pattern: str, seq: int, job_id: str) -> str:
    return render_file_name(pattern, seq=seq, uuid=UUID, synced=NOW, job_id=job_id)


@given(patterns(), SEQS, SEQS)
def test_two_files_of_a_job_have_two_names(pattern: str, one: int, other: int) -> None:
    assert pattern_problems(pattern) == []
    assume(one != other)
    assert _name(pattern, one, "job") != _name(pattern, other, "job")


@given(patterns(), st.tuples(SEQS, JOB_IDS), st.tuples(SEQS, JOB_IDS))
def test_files_of_two_jobs_have_two_names(
    pattern: str, one: tuple[int, str], other: tuple[int, str]
) -> None:
    assert pattern_problems(pattern) == []
    assume(one != other)
    assert _name(pattern, *one) != _name(pattern, *other)


@given(st.text(max_size=30))
def test_a_pattern_without_problems_makes_a_name_readers_see(text: str) -> None:
    pattern = text + "{uuid}"
    if not pattern_problems(pattern):
        name = _name(pattern, 0, "job") + FILE_SUFFIX
        assert not name.startswith(("_", "."))
        assert "/" not in name
        assert name.isascii()
        assert len(name) <= MAX_FILE_NAME


def test_names_sort_by_number_below_one_hundred_thousand() -> None:
    names = [_name("part-{supa_job_id}-{seq}", seq, "j") for seq in (0, 9, 10, 99, 12345, 99999)]
    assert names == sorted(names)
