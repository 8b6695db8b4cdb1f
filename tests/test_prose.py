"""The prose of pages and messages: width, words, references, and a hint for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import (
    FORBIDDEN,
    OUTSIDE,
    QUESTION,
    ROOT,
    WIDTH,
    Line,
    docstrings,
    errors_without_hint,
    forbidden_messages,
    long_lines,
    messages,
    pages,
    prose,
    reflow,
)

PAGES = pages()
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES]
)

_OLD_LINES = {"CHANGELOG.md"}
"""Pages that are not wrapped: entries of the changelog become lists by feature in a release."""

_OLD_WORDS = ("docs/style.md",)
"""The page that lists the words."""


@each_page
def test_no_line_of_a_page_is_too_long(page: Path) -> None:
    if page.relative_to(ROOT).as_posix() not in _OLD_LINES:
        assert [str(line) for line in long_lines(page)] == []


@each_page
def test_no_page_uses_a_word_that_the_style_forbids(page: Path) -> None:
    if not page.relative_to(ROOT).as_posix().startswith(_OLD_WORDS):
        assert [str(line) for line in prose(page) if FORBIDDEN.search(line.text)] == []


@each_page
def test_pages_have_no_reference_outside_the_repository(page: Path) -> None:
    assert [str(line) for line in prose(page) if OUTSIDE.search(line.text)] == []


def test_no_message_uses_a_word_that_the_style_forbids() -> None:
    assert [str(line) for line in forbidden_messages()] == []


def test_no_text_of_the_product_refers_to_what_is_not_in_the_repository() -> None:
    assert [str(line) for line in messages() if OUTSIDE.search(line.text)] == []


def test_every_error_that_a_user_can_fix_has_a_hint() -> None:
    assert [str(line) for line in errors_without_hint()] == []


def test_module_docstrings_name_their_concept_and_are_no_questions() -> None:
    first = docstrings(ROOT)
    assert [str(line) for line in first if QUESTION.match(line.text)] == []


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("S3 told lakeload", True),
        ("the catalog does not answer", True),
        ("the tables are in step", True),
        ("look at `spark.log`", True),
        ("the catalog does not respond", False),
        ("ask your vendor", False),
    ],
)
def test_forbidden_messages_text_with_an_old_word_is_found(
    monkeypatch: pytest.MonkeyPatch, text: str, forbidden: bool
) -> None:
    line = Line("cli/lakeload/app.py", 1, text)
    monkeypatch.setattr("tests.prose.messages", lambda: iter([line]))
    assert forbidden_messages() == ([line] if forbidden else [])


@pytest.mark.parametrize(
    "text",
    [
        "# A heading that is longer than the width stays one line, because Markdown wants it so "
        * 2,
        "| a table | stays |\n|---|---|\n" + "| " + "cell " * 40 + "|",
        "```\n" + "code " * 40 + "\n```",
    ],
)
def test_reflow_unwrappable_text_is_unchanged(text: str) -> None:
    assert reflow(text) == f"{text}\n"


def test_wrapped_text_keeps_its_words_items_and_spans_of_code() -> None:
    words = "word " * 30
    text = f"{words}`a span of code` {words}\n\n- {words}1. {words}\n  more\n> {words}{words}\n"
    done = reflow(text)
    assert done.replace("> ", "").split() == text.replace("> ", "").split()
    assert max(map(len, done.splitlines())) <= WIDTH
    assert "`a span of code`" in done
    assert reflow(done) == done
    assert done.count("\n- ") == 1
    assert not any(line.lstrip().startswith("1. ") for line in done.splitlines())
