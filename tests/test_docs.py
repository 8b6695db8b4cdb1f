"""What the documents promise: commands, files, links, exit codes, and YAML that is valid."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from lakeload.app import COMMANDS
from lakeload.checks import CheckStatus
from lakeload.config.problems import has_errors
from lakeload.documents.load import inspect_all
from lakeload.formats.plan import Action
from lakeload.formats.reports import RecoveryStatus
from lakeload.ui.checks import FINDINGS
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.contract.maintain import StepStatus
from lakeload_jobs.contract.result import TableStatus
from tests.pages import MEANINGS, PROBLEMS, REPORTED, UNSEEN, command, error_types, problem_codes
from tests.pages import PAGES as PAGES_MADE

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "configs" / "README.md",
]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)
each_command = pytest.mark.parametrize("name", COMMANDS)


def options(name: str) -> set[str]:
    """Return every spelling of every option of a command."""
    found = {
        spelling
        for parameter in command(name).params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }
    return found | {"-h", "--help"}


def code_blocks(text: str, language: str) -> list[str]:
    """Return the content of the fenced blocks of one language; '' for those without."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def typed_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every `lakeload` command that a page shows, without what is piped on."""
    shell = "\n".join(code_blocks(text, "")).replace("\\\n", " ")
    lines = re.findall(r"^(?:\w*\$ )?lakeload (.+)$", shell, re.MULTILINE)
    for line in (*lines, *re.findall(r"`lakeload ([^`]+)`", text)):
        yield shlex.split(re.split(r" (?:&&|\|\|?|>) ", line)[0], comments=True)


def anchors(text: str) -> set[str]:
    """Return what a link can name in a page: its headings, as hosts of Git write them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@each_command
def test_the_list_of_commands_has_the_first_sentences_of_their_help(name: str) -> None:
    assert COMMANDS[name] == command(name).help.partition("\n\n")[0].replace("\n", " ")


@each_command
def test_every_command_and_option_has_help(name: str) -> None:
    found = command(name)
    assert found.help
    assert [p.name for p in found.params if not getattr(p, "help", None)] == []


@each_command
def test_every_command_is_on_the_page_of_commands(name: str) -> None:
    assert f"| [`lakeload {name}`](#lakeload-{name}) |" in COMMANDS_PAGE


@each_page
def test_every_command_that_is_typed_exists_with_its_options(page: Path) -> None:
    typed = list(typed_commands(page.read_text(encoding="utf-8")))
    assert len(typed) > len(COMMANDS) or page.name != "commands.md"
    for name, *arguments in typed:
        if name.startswith("--"):
            assert name in {"--help", "--version", "--install-completion", "--show-completion"}
            continue
        given = {word for word in arguments if word.startswith("-") and word != "-"}
        assert given <= options(name), (name, arguments)


@pytest.mark.parametrize("name", PAGES_MADE)
def test_a_page_that_is_made_from_the_code_is_up_to_date(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == PAGES_MADE[name](), "run `python -m tests.pages`"


def test_every_error_has_a_meaning_and_an_action() -> None:
    assert set(MEANINGS) | UNSEEN == set(error_types())


def test_error_types_that_are_no_class_are_on_the_page() -> None:
    written = set()
    for path in (*(ROOT / "cli").rglob("*.py"), *(ROOT / "sparkjobs").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        written |= set(re.findall(r'ErrorInfo\(\s*(?:type=)?"(\w+)"', text))
    assert {"OutOfMemory", "NoResult"} <= written
    # A note of a plan is shown as a warning, and no result holds it.
    assert written - {"Warning"} <= {*MEANINGS, *REPORTED}


def test_every_code_of_a_problem_has_a_meaning() -> None:
    assert len(problem_codes()) > 30
    assert set(PROBLEMS) == problem_codes()


def test_codes_of_the_problems_of_invalid_files_have_a_meaning() -> None:
    files = sorted((ROOT / "tests/cases/invalid").glob("*.yaml"))
    assert len(files) > 100
    for path in files:
        for inspection in inspect_all([path], {}):
            assert {problem.code for problem in inspection.problems} <= set(PROBLEMS), path


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("## Of a table in `sync`", get_args(TableStatus)),
        ("## Of a table in `plan`", get_args(Action)),
        ("## Of a table in `recover`", get_args(RecoveryStatus)),
        ("## Of a step in `maintain`", get_args(StepStatus)),
    ],
)
def test_every_status_is_on_its_page(heading: str, words: tuple[str, ...]) -> None:
    text = (ROOT / "docs/statuses.md").read_text(encoding="utf-8")
    section = text.partition(heading)[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(words)


def test_every_status_of_a_check_is_on_its_page() -> None:
    text = (ROOT / "docs/statuses.md").read_text(encoding="utf-8")
    for name, words in (("test-connection", {}), ("doctor", FINDINGS)):
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", text, re.MULTILINE)
        assert re.findall(r"`(\w+)`", row) == [words.get(one, one.value) for one in CheckStatus]


def test_the_exit_code_table_is_the_enum() -> None:
    text = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    table = text[text.index("| code |") :].split("\n\n")[0]
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    assert codes == sorted(ExitCode)


def test_every_error_has_an_exit_code_of_the_table() -> None:
    def family(error: type[LakeloadError]) -> set[type[LakeloadError]]:
        return {error}.union(*map(family, error.__subclasses__()))

    assert len(family(LakeloadError)) > 5
    assert all(error.exit_code in set(ExitCode) for error in family(LakeloadError))


def test_every_yaml_block_of_the_readme_is_a_valid_document(tmp_path: Path) -> None:
    blocks = code_blocks(README, "yaml")
    assert len(blocks) == 2
    for block in blocks:
        kind = "pipeline" if "\ntables:" in block else "destination"
        (tmp_path / f"{kind}.yml").write_text(block, encoding="utf-8")
        for inspection in inspect_all([tmp_path / f"{kind}.yml"], {}):
            assert not has_errors(inspection.problems), inspection.problems


def test_the_readme_is_short_and_installs_at_its_beginning() -> None:
    assert len(README.split()) <= 900
    assert "## Install" in README.splitlines()[:40]


def test_every_page_is_linked_from_the_first_one() -> None:
    first = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in first} == set()


def test_every_decision_is_in_the_index_with_its_title() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for page in folder.glob("[0-9]*.md"):
        number, _, title = (
            page.read_text(encoding="utf-8").splitlines()[0].strip("# ").partition(". ")
        )
        assert f"| {number} | [{title}]({page.name}) | accepted |" in index


def test_every_decision_has_the_parts_of_the_template() -> None:
    pages = list((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert len(pages) >= 15
    for page in pages:
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], page.name
        assert text.splitlines()[2] == "Status: accepted", page.name


@each_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    missing = [t for t in targets if not (page.parent / t.partition("#")[0]).exists()]
    assert missing == []
    for target in targets:
        name, _, anchor = target.partition("#")
        if anchor:
            linked = (page.parent / name).read_text(encoding="utf-8") if name else text
            assert anchor in anchors(linked), target


@each_page
def test_every_example_and_make_target_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"\bconfigs/[\w./-]+\.ya?ml", text)
    assert [path for path in named if not (ROOT / path).is_file()] == []
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z0-9]+)", text, re.MULTILINE)) <= targets


@each_page
def test_pages_name_no_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"/(?:root|work|home|Users)/\w+", text) == []
