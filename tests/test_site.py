"""The documentation site builds strictly, and its search finds the page of a question."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lakeload_jobs.contract.errors import docs_link
from tests.pages import CLI, REPORTED, UNSEEN, error_types, problem_codes
from tests.site import ROOT, Search, build, page_questions, questions


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def search(site: Path) -> Iterator[Search]:
    with Search(site) as engine:
        yield engine


def test_every_page_is_part_of_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs")
        folder = path.parent if path.stem in ("index", "README") else path.with_suffix("")
        assert (site / folder / "index.html").is_file(), path


def test_pages_load_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', text) == []


def test_links_to_code_are_text_and_links_to_pages_are_links(site: Path) -> None:
    text = (site / "CONTRIBUTING" / "index.html").read_text(encoding="utf-8")
    assert 'href="../layout/"' in text
    assert ".github/workflows" not in text


def linked_codes() -> list[str]:
    """Return the types and codes whose `docs` link leads to the page of error codes."""
    causes = yaml.safe_load((CLI / "probes/causes.yml").read_text(encoding="utf-8"))
    findings = tomllib.loads((CLI / "probes/failures.toml").read_text(encoding="utf-8"))
    return [
        *(set(error_types()) - UNSEEN),
        *REPORTED,
        *problem_codes(),
        *causes["aws"],
        *(str(code) for codes in causes["same"].values() for code in codes),
        *causes["catalog"],
        *(finding["code"] for finding in findings.values()),
    ]


def test_docs_link_of_every_error_and_code_has_its_anchor_on_the_site(site: Path) -> None:
    codes = linked_codes()
    assert len(codes) > 150
    for code in codes:
        page, _, anchor = docs_link(code).partition("#")
        text = (site / page / "index.html").read_text(encoding="utf-8")
        assert f'<a id="{anchor}">' in text, code


def test_the_search_finds_nothing_for_a_word_that_no_page_has(search: Search) -> None:
    assert search.pages("quuxification") == []


def test_the_page_says_what_to_try_when_the_search_finds_nothing(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert '"search.result.none": "No page has these words. Try other or fewer words' in text


def test_the_search_finds_a_page_by_the_beginning_of_a_word_and_despite_a_typo(
    search: Search,
) -> None:
    assert "scheduling/" in search.pages("airfl")[:3]
    assert search.pages("kuberentes")[:3] == search.pages("kubernetes")[:3]
    assert search.pages("DiskFullError")[:3] == search.pages("disk full error")[:3]


@pytest.mark.parametrize(
    ("word", "other"),
    [("optimise", "optimize"), ("catalogue", "catalog"), ("configuring", "configuration")],
)
def test_forms_and_spellings_of_a_word_find_the_same_pages(
    search: Search, word: str, other: str
) -> None:
    assert search.pages(f"{word} it")[:3] == search.pages(f"{other} it")[:3] != []


def test_each_page_of_the_list_of_questions_is_part_of_the_site(site: Path) -> None:
    pages = page_questions()
    assert len(pages) >= 50
    assert [page for page in pages if not (site / page / "index.html").is_file()] == []
    listed = {question for lines in pages.values() for question in lines}
    assert {question for question, _ in questions()} & listed == set()


def test_the_list_of_questions_is_long_enough_to_mean_something() -> None:
    assert len(questions()) >= 30
    assert len(set().union(*(pages for _, pages in questions()))) >= 15


@pytest.mark.parametrize(("question", "pages"), questions(), ids=[q for q, _ in questions()])
def test_a_question_finds_its_page_among_the_first_three(
    search: Search, question: str, pages: set[str]
) -> None:
    assert pages & set(search.pages(question)[:3])


def test_most_questions_that_the_list_lacks_find_their_page(site: Path) -> None:
    """A change of the ranking or of the words must not find fewer pages by words that are new."""
    pages_of: dict[str, set[str]] = {}
    for page, lines in page_questions().items():
        for text in lines:
            pages_of.setdefault(text, set()).add(page.removeprefix("./"))
    asked = list(pages_of)[::35]
    with Search(site, without=frozenset(asked)) as engine:
        found = [bool(pages_of[text] & set(engine.pages(text)[:3])) for text in asked]
    assert sum(found) / len(found) >= 0.78
