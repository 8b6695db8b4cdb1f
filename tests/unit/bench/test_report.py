"""The benchmark's report: bars with their figures, and the chart of its results file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from bench.measure import Measurement
from bench.plot import chart, main
from bench.report import Run, Setting, summary, write_results

SETTING = Setting(
    shape="orders",
    rows=3_000_000,
    runs=1,
    heap="2g",
    cores=2,
    bars_from_rows=3_000_000,
    peers="polars 1.37.1",
)
MEBIBYTE = 2**20


def run(name: str, cpu: float, *, wall: float = 10, peak: int = 800, rows: int = 3_000_000) -> Run:
    cost = Measurement(cpu, wall, peak * MEBIBYTE, 0, "cgroup v1")
    return Run(name, "CSV", rows, 10**8, 10**7, 2, cost)


def test_each_bar_is_met_or_missed_with_its_figure() -> None:
    runs = [
        run("lakeload", 20.0),
        run("spark", 50.0),
        run("duckdb", 40.0),
        run("lakeload", 80.0, peak=880, rows=12_000_000),
        run("lakeload-1core", 80.0, wall=16, rows=12_000_000),
        run("polars", 50.0, rows=12_000_000),
    ]
    text, met = summary(runs, SETTING)
    assert not met
    for line in (
        "- MISSED: CSV: CPU of lakeload is 0.40 × spark, bar ≤ 0.35",
        "- met: CSV: CPU of lakeload is 0.50 × duckdb, bar ≤ 0.65",
        "- met: CSV: peak of lakeload is 800 MiB, bar ≤ 900",
        "- MISSED: CSV: two cores are 1.60 × as fast as one at 12,000,000 rows, bar ≥ 1.7",
        "- met: CSV: peak at 12,000,000 rows is 1.10 × that at 3,000,000, bar ≤ 1.1",
        "- MISSED: CSV: CPU of lakeload at 12,000,000 rows is 1.60 × polars, bar ≤ 1.3",
        "| 12,000,000 | lakeload | 80.0 | 6.67 | 10.0 | 880 |",
        "| 3,000,000 | lakeload | 20.0 | 6.67 | 10.0 | 800 |",
    ):
        assert line in text.splitlines()


def test_chart_shows_the_medians_of_the_results_file(tmp_path: Path) -> None:
    runs = [run("spark", 40), run("lakeload", 18), run("lakeload", 22), run("lakeload", 30)]
    written = write_results("text", [*runs, run("lakeload", 99, rows=9)], SETTING, tmp_path)
    results = written.with_suffix(".json")
    assert len(json.loads(results.read_text())["runs"]) == 5

    assert main([str(results), str(tmp_path / "chart.svg")]) == 0

    image = ElementTree.parse(tmp_path / "chart.svg")  # noqa: S314
    name = "{http://www.w3.org/2000/svg}"
    shown = [text.text for text in image.iter(f"{name}text")]
    assert shown[1:] == ["lakeload", "22.0", "Spark's own writer", "40.0"]
    widths = [float(bar.get("width", "")) for bar in image.iter(f"{name}rect")]
    assert widths == [209.0, 380.0]


def test_chart_of_the_readme_shows_the_results_that_the_page_names() -> None:
    docs = Path(__file__).parents[3] / "docs"
    (named,) = re.findall(r"last whole run in \[bench/results\]\(([^)]+)\)", _page(docs))
    results = json.loads((docs / named).with_suffix(".json").read_text())
    assert (docs / "benchmark.svg").read_text() == chart(results)


def _page(docs: Path) -> str:
    """The part of the page about copies of files."""
    return (docs / "benchmarks.md").read_text().split("## PostgreSQL")[0]
