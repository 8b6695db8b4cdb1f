"""What a test file leads to: imports, names in strings, fixtures, and files that are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_graph import FAR, Graph, read_graph

_JOB = "sparkjobs/lakeload_jobs"
_CLI = "cli/lakeload"


def _graph(root: Path, files: dict[str, str]) -> Graph:
    """Return the graph of modules, which are written without `.py` here."""
    for name, text in files.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_graph(root)


def _job(root: Path, files: dict[str, str]) -> Graph:
    """Return the graph of these and of a module of the job, `rows/ids.py`."""
    own = {f"{_JOB}/rows/__init__": "", f"{_JOB}/rows/ids": "def make(): pass"}
    return _graph(root, own | files)


IDS = f"{_JOB}/rows/ids.py"


@pytest.mark.parametrize(
    "text",
    [
        "from lakeload_jobs.rows.ids import make",
        "from lakeload_jobs.rows import ids",
        "import lakeload_jobs.rows.ids",
        "def test_a():\n    from lakeload_jobs.rows.ids import make",
        "monkeypatch.setattr('lakeload_jobs.rows.ids.make', None)",
        "run([python, '-c', 'from lakeload_jobs.rows.ids import make; make()'])",
        "run([python, '-m', 'lakeload_jobs.rows.ids'])",
        "import_module(f'lakeload_jobs.rows.{name}')",
        "run([python, FOLDER / 'ids.py'])",
    ],
)
def test_test_leads_to_what_it_imports_or_names(tmp_path: Path, text: str) -> None:
    graph = _job(tmp_path, {"tests/unit/test_ids": text})
    assert graph.distances([IDS]) == {IDS: 0, "tests/unit/test_ids.py": 1}


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        '"""Of lakeload_jobs.rows.ids."""',
        "from lakeload_jobs.rows.keys import make",
        "a = 'lakeload_jobs.rows'",
        "a = 'lakeload_jobs.rows.ids_of'",
    ],
)
def test_test_that_names_other_things_does_not_lead_there(tmp_path: Path, text: str) -> None:
    assert _job(tmp_path, {"tests/unit/test_ids": text}).distances([IDS]) == {IDS: 0}


def test_steps_are_counted_through_registries_and_programs(tmp_path: Path) -> None:
    graph = _job(
        tmp_path,
        {
            f"{_CLI}/__main__": "from lakeload.app import main",
            f"{_CLI}/app": "COMMANDS = {'sync': 'lakeload.commands.sync'}",
            f"{_CLI}/commands/sync": "SCRIPT = JOBS / 'run_job.py'",
            f"{_JOB}/entry/run_job": "from lakeload_jobs.jobs.attempt import run",
            f"{_JOB}/jobs/attempt": "import_module(f'lakeload_jobs.jobs.{name}')",
            f"{_JOB}/jobs/__init__": "",
            f"{_JOB}/jobs/load": "from lakeload_jobs.rows.ids import make",
            "tests/e2e/test_sync": "run([sys.executable, '-m', 'lakeload', 'sync'])",
            "tests/unit/test_other": "run(['-m', 'else', 'lakeload'])",
        },
    )
    steps = graph.distances([IDS])
    assert steps["tests/e2e/test_sync.py"] == 7
    assert "tests/unit/test_other.py" not in steps


def test_fixture_leads_to_its_plugin_and_conftest(tmp_path: Path) -> None:
    fixture = "from lakeload_jobs.rows.ids import make\n@pytest.fixture\ndef ids(): pass\n"
    graph = _job(
        tmp_path,
        {
            "tests/conftest": "pytest_plugins = ['tests.servers.ids']",
            "tests/servers/ids": fixture,
            "tests/unit/rows/conftest": "@pytest.fixture(autouse=True)\ndef rows(ids): pass",
            "tests/unit/rows/test_rows": "",
            "tests/unit/test_argument": "def test_a(ids): pass",
            "tests/unit/test_mark": "pytestmark = pytest.mark.usefixtures('ids')",
            "tests/unit/test_without": "def test_a(other): pass",
        },
    )
    steps = graph.distances([IDS])
    assert {path: steps[path] for path in graph.tests if path in steps} == {
        "tests/unit/rows/test_rows.py": 3,
        "tests/unit/test_argument.py": 2,
        "tests/unit/test_mark.py": 2,
    }


def test_what_all_tests_get_is_far_from_each(tmp_path: Path) -> None:
    autouse = "import lakeload_jobs.rows.ids\n@pytest.fixture(autouse=True)\ndef ids(): pass\n"
    graph = _job(
        tmp_path,
        {
            "tests/conftest": "import tests.order\npytest_plugins = ['tests.ids']",
            "tests/order": "",
            "tests/ids": autouse,
            "tests/unit/test_any": "",
        },
    )
    for path in ("tests/conftest.py", "tests/order.py", "tests/ids.py"):
        assert graph.distances([path])["tests/unit/test_any.py"] == FAR
    assert "tests/unit/test_any.py" not in graph.distances([IDS])


def test_what_reads_the_sources_as_text_is_far(tmp_path: Path) -> None:
    text = "FILES = (ROOT / 'sparkjobs').rglob('*.py')"
    graph = _job(tmp_path, {"tests/scan": text, "tests/test_scan": "import tests.scan"})
    assert graph.distances([IDS]) == {IDS: 0, "tests/scan.py": FAR, "tests/test_scan.py": FAR + 1}
    assert graph.distances([f"{_JOB}/new.py"])["tests/test_scan.py"] == FAR + 1
    assert graph.distances(["tests/else.py"]) == {"tests/else.py": 0}


@pytest.mark.parametrize(
    ("file", "readers"),
    [
        (f"{_CLI}/probes/causes.yml", {f"{_CLI}/probes/causes.py"}),
        (f"{_CLI}/probes/page.jinja", {f"{_CLI}/probes/causes.py", f"{_CLI}/probes/other.py"}),
        (f"{_CLI}/probes/deep/page.jinja", {f"{_CLI}/probes/causes.py", f"{_CLI}/probes/other.py"}),
        ("tests/cases/policy/a.json", {"tests/unit/test_policy.py"}),
        ("tests/cases/names.tsv", {"tests/unit/test_names.py"}),
        ("tests/corpus/expected/a.json", {"tests/corpus/oracle.py"}),
        ("docs/deep/page.md", {"tests/unit/test_names.py"}),
        ("README.md", {"tests/unit/test_pages.py"}),
        ("LICENSE", set()),
        ("new/file.txt", set()),
    ],
)
def test_readers_of_a_file_name_it_or_its_folder(
    tmp_path: Path, file: str, readers: set[str]
) -> None:
    graph = _graph(
        tmp_path,
        {
            f"{_CLI}/probes/causes": "TEXT = read('causes.yml')",
            f"{_CLI}/probes/other": "PAGE = 'docs'",
            "tests/corpus/oracle": "",
            "tests/unit/test_causes": "import lakeload.probes.causes",
            "tests/unit/test_policy": "CASES = ROOT / 'cases' / 'policy'",
            "tests/unit/test_names": "CASES = 'cases/names.tsv', 'docs'",
            "tests/unit/test_pages": "PAGES = ROOT.glob('*.md')",
        },
    )
    assert graph.readers(file) == readers


def test_graph_of_this_repository_reaches_the_job_from_a_command() -> None:
    graph = read_graph()
    steps = graph.distances([f"{_JOB}/formats/iceberg/load/publish.py"])
    assert "tests/e2e/test_refusals.py" in steps
    assert "tests/unit/contract/test_codec.py" not in steps
    assert {"tests/conftest.py", "tests/json_documents.py"} <= graph.of_all_tests
