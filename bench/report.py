"""Runs → medians, ratios, bars, and the dated Markdown file under bench/results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import comparisons, cpu, median, names, peak, wall, with_range
from bench.machine import facts
from bench.measure import Measurement

PACKAGES = ("lakeload", "pyspark", "pyarrow", "arro3-io", "ministack", "boto3")
CPU_BARS = {
    ("CSV", "lakeload", "spark"): 0.35,
    ("CSV", "lakeload", "duckdb"): 0.65,
    ("PARQUET", "lakeload", "spark"): 0.35,
    ("PARQUET", "lakeload", "duckdb"): 0.60,
    ("PARQUET", "lakeload-jvm", "spark"): 0.85,
}
"""CPU of the first over that of the second contestant."""
LARGE_CPU_BAR = 1.3
"""CPU of lakeload over that of polars, with the most rows."""
PEAK_BAR = 1.1
"""Peak with the most rows over the median peak."""
PEAK_BAR_MIB = {"CSV": 900}
CORES_BAR = 1.7
"""Wall time on one core over that on two."""


Verdict = tuple[str, bool]
"""A bar in words, and whether it was met."""


@dataclass(frozen=True)
class Run:
    """One verified run. Sizes in bytes."""

    name: str
    form: str
    rows: int
    input_bytes: int
    output_bytes: int
    files: int
    cost: Measurement


@dataclass(frozen=True)
class Setting:
    """What the runs had in common, for the heading."""

    shape: str
    rows: int
    runs: int
    heap: str
    cores: int
    bars_from_rows: int | None
    """None: no bars are judged."""
    peers: str
    """Versions of the libraries that took part; '' for none."""

    @property
    def judged(self) -> bool:
        """Whether the bars are about these runs."""
        return self.bars_from_rows is not None and self.rows >= self.bars_from_rows


def summary(runs: Sequence[Run], setting: Setting) -> tuple[str, bool]:
    """The report as Markdown, and whether every bar that these runs can measure was met."""
    timed = [run for run in runs if run.rows == setting.rows]
    scaled = [run for run in runs if run.rows != setting.rows]
    lines = [*_heading(setting, timed), ""]
    verdicts: list[Verdict] = []
    for form in dict.fromkeys(run.form for run in timed):
        of_form = [run for run in timed if run.form == form]
        lines += [*_table(form, of_form), "", *comparisons(of_form), ""]
        if setting.judged:
            verdicts += _verdicts(form, of_form)
    more_lines, more_verdicts = _scaling(timed, scaled)
    lines += more_lines
    verdicts += more_verdicts if setting.judged else []
    lines += _bars(verdicts, setting)
    return "\n".join(lines), all(met for _, met in verdicts)


def write_results(text: str, runs: Sequence[Run], setting: Setting, folder: Path) -> Path:
    """Write the report (`free_path`), and what was measured beside it as JSON, for `bench.plot`."""
    path = free_path(folder, "" if setting.shape == "orders" else setting.shape)
    path.write_text(text + "\n", encoding="utf-8")
    measured = {"setting": asdict(setting), "runs": [asdict(run) for run in runs]}
    path.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return path


def free_path(folder: Path, what: str) -> Path:
    """Return the path of a new report: `YYYY-MM-DD-WHAT.md`, or `…-2`, `…-3` when there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join(filter(None, (datetime.now(UTC).strftime("%Y-%m-%d"), what)))
    path, number = folder / f"{name}.md", 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}.md"
    return path


def _table(form: str, runs: Sequence[Run]) -> list[str]:
    """Median and range of every contestant on one input form."""
    size = runs[0].input_bytes / 1e6
    lines = [
        f"## {form.capitalize() if form != 'CSV' else form} → gzip Parquet ({size:,.0f} MB in)",
        "",
        "| contestant | CPU s (range) | wall s (range) | peak MiB | out MB | files |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted(names(runs), key=lambda name: median(runs, name, cpu)):
        cells = [
            name,
            with_range(runs, name, cpu),
            with_range(runs, name, wall),
            f"{median(runs, name, peak):,.0f}",
            f"{median(runs, name, lambda run: run.output_bytes / 1e6):,.1f}",
            f"{median(runs, name, lambda run: run.files):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _verdicts(form: str, runs: Sequence[Run]) -> list[Verdict]:
    present = set(names(runs))
    verdicts = []
    for (of_form, name, peer), bar in CPU_BARS.items():
        if of_form == form and {name, peer} <= present:
            ratio = median(runs, name, cpu) / median(runs, peer, cpu)
            text = f"{form}: CPU of {name} is {ratio:.2f} × {peer}, bar ≤ {bar}"
            verdicts.append((text, ratio <= bar))
    if form in PEAK_BAR_MIB and "lakeload" in present:
        most, bar = median(runs, "lakeload", peak), PEAK_BAR_MIB[form]
        verdicts.append((f"{form}: peak of lakeload is {most:,.0f} MiB, bar ≤ {bar}", most <= bar))
    return verdicts


def _scaling(timed: Sequence[Run], scaled: Sequence[Run]) -> tuple[list[str], list[Verdict]]:
    """Costs in other sizes. With the most rows: memory and wall time of lakeload against its own,
    CPU against that of polars."""
    lines, verdicts = [], []
    for form in dict.fromkeys(run.form for run in scaled):
        of_form = [run for run in scaled if run.form == form]
        same = [run for run in timed if run.form == form]
        lines += _sizes(form, of_form, same)
        most = max(run.rows for run in of_form)
        found = {run.name: run for run in of_form if run.rows == most}
        if "lakeload" not in found or not same or most < same[0].rows:
            continue
        ours = found["lakeload"]
        ratio = peak(ours) / median(same, "lakeload", peak)
        text = f"{form}: peak at {ours.rows:,} rows is {ratio:.2f} × that at {same[0].rows:,}"
        verdicts.append((f"{text}, bar ≤ {PEAK_BAR}", ratio <= PEAK_BAR))
        if "lakeload-1core" in found:
            ratio = wall(found["lakeload-1core"]) / wall(ours)
            text = f"{form}: two cores are {ratio:.2f} × as fast as one at {ours.rows:,} rows"
            verdicts.append((f"{text}, bar ≥ {CORES_BAR}", ratio >= CORES_BAR))
        if "polars" in found:
            ratio = cpu(ours) / cpu(found["polars"])
            text = f"{form}: CPU of lakeload at {ours.rows:,} rows is {ratio:.2f} × polars"
            verdicts.append((f"{text}, bar ≤ {LARGE_CPU_BAR}", ratio <= LARGE_CPU_BAR))
    return (["## Scaling", "", *lines] if lines else []), verdicts


def _sizes(form: str, scaled: Sequence[Run], timed: Sequence[Run]) -> list[str]:
    """A table of one form: a row for each size and contestant that ran in other sizes."""
    runs = [*scaled, *(run for run in timed if run.name in names(scaled))]
    lines = [
        f"{form if form == 'CSV' else form.capitalize()}, one run of each other size:",
        "",
        "| rows | contestant | CPU s | CPU s per million rows | wall s | peak MiB |",
        "|---|---|---|---|---|---|",
    ]
    for rows in sorted({run.rows for run in runs}):
        of_size = [run for run in runs if run.rows == rows]
        for name in names(of_size):
            seconds = median(of_size, name, cpu)
            cells = [f"{rows:,}", name, f"{seconds:.1f}", f"{seconds / rows * 1e6:.2f}"]
            cells += [f"{median(of_size, name, wall):.1f}", f"{median(of_size, name, peak):,.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _bars(verdicts: list[Verdict], setting: Setting) -> list[str]:
    if setting.bars_from_rows is None:
        return ["No bars are judged for this shape."]
    if not verdicts:
        return [f"Bars are judged from {setting.bars_from_rows:,} rows on; start-up weighs here."]
    return ["## Bars", "", *(f"- {'met' if met else 'MISSED'}: {text}" for text, met in verdicts)]


def _heading(setting: Setting, runs: Sequence[Run]) -> list[str]:
    return [
        f"# Benchmark of {datetime.now(UTC).strftime('%Y-%m-%d %H:%M')} UTC",
        "",
        f"{setting.rows:,} rows of `{setting.shape}`; median of {setting.runs} interleaved "
        f"runs; `local[{setting.cores}]`, heap {setting.heap}; every output verified.",
        "",
        *facts(PACKAGES),
        f"- CPU: {', '.join(sorted({run.cost.method for run in runs}))}; peak: sampled PSS of the "
        "tree; the AWS emulator is in neither",
        *([f"- Peers, in an environment of their own: {setting.peers}"] if setting.peers else []),
        "- `_supa_index`: dense, with spark "
        "`monotonically_increasing_id()`; lakeload writes to S3 with its commit protocol, the "
        "others to a local folder",
    ]
