"""`python -m bench.plot RESULTS.json IMAGE.svg`: the CPU seconds of a benchmark as a bar chart."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

SHOWN = ("lakeload", "spark", "duckdb", "polars", "pyarrow")
LABELS = {"spark": "Spark's own writer", "duckdb": "DuckDB", "polars": "polars"}
LABEL_WIDTH, BAR_WIDTH, ROW, TITLE = 150, 380, 26, 34
STYLE = (
    "text{font:13px sans-serif;fill:#24292f}.title{font-weight:bold}"
    ".own{fill:#0969da}.peer{fill:#afb8c1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.own{fill:#4493f8}.peer{fill:#656c76}}"
)


def chart(results: Mapping[str, Any]) -> str:
    """Return the SVG of the runs that `bench.report` has written: a group for each input form, a
    bar for the median CPU seconds of each contestant, the quickest first."""
    setting = results["setting"]
    runs = [run for run in results["runs"] if run["rows"] == setting["rows"]]
    groups = {form: _medians(runs, form) for form in dict.fromkeys(run["form"] for run in runs)}
    most = max(value for medians in groups.values() for value in medians.values())
    lines: list[str] = []
    y = 0
    for form, medians in groups.items():
        title = f"{form} to gzip Parquet, {setting['rows']:,} rows: CPU seconds"
        lines.append(f'<text class="title" x="0" y="{y + 20}">{escape(title)}</text>')
        y += TITLE
        for name, value in sorted(medians.items(), key=lambda item: item[1]):
            width = round(BAR_WIDTH * value / most, 1)
            kind = "own" if name == "lakeload" else "peer"
            lines += [
                f'<text x="0" y="{y + 15}">{escape(LABELS.get(name, name))}</text>',
                f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y}" width="{width}" height="20"/>',
                f'<text x="{LABEL_WIDTH + width + 8}" y="{y + 15}">{value:.1f}</text>',
            ]
            y += ROW
        y += 8
    size = f'width="{LABEL_WIDTH + BAR_WIDTH + 60}" height="{y}"'
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def _medians(runs: Sequence[Mapping[str, Any]], form: str) -> dict[str, float]:
    of_form = [run for run in runs if run["form"] == form]
    return {
        name: statistics.median(run["cost"]["cpu"] for run in of_form if run["name"] == name)
        for name in SHOWN
        if any(run["name"] == name for run in of_form)
    }


def main(arguments: Sequence[str]) -> int:
    """Write the chart of a results file."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    results, image = map(Path, arguments)
    image.write_text(chart(json.loads(results.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
