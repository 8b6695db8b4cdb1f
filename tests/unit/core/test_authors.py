"""The author of an attempt, as records have it, also those of earlier programs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakeload_jobs.core.authors import author_of, named_author, split_author, started_by

AT = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)


@pytest.mark.parametrize("user", ["etl@loader-1", "a b pid 7@host", "o'neil@host", "1000@pid 3"])
def test_author_is_read_as_it_was_written(user: str) -> None:
    assert split_author(author_of(user, 4711)) == (user, 4711)


@pytest.mark.parametrize(
    ("author", "started", "text"),
    [
        (
            "etl@loader-1 pid 4711",
            AT,
            " (etl@loader-1, process 4711, since 2026-11-21 10:15:30 UTC)",
        ),
        ("etl@loader-1", AT, " (etl@loader-1, since 2026-11-21 10:15:30 UTC)"),
        ("etl@loader-1 pid 4711", None, " (etl@loader-1, process 4711)"),
        ("", AT, " (since 2026-11-21 10:15:30 UTC)"),
        ("", None, ""),
    ],
)
def test_record_of_an_earlier_program_names_what_it_has(
    author: str, started: datetime | None, text: str
) -> None:
    assert started_by(author, started) == text


def test_author_without_a_process_is_the_user_alone() -> None:
    assert split_author("pid 4711") == ("pid 4711", None)
    assert (named_author(""), named_author("etl@h")) == ("", "etl@h")
