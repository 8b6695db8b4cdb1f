"""Runs → medians, ratios, bars, and the dated Markdown file under bench/results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import comparisons, cpu, median, names, peak, wall, with_range
from bench.machine import facts
from bench.measure import Measurement

PACKAGES = ("lakeload", "pyspark", "pyarrow", "arro3-io", "duckdb", "ministack", "boto3")
CPU_BARS_AGAINST_SPARK = {
    ("CSV", "lakeload"): 0.85,
    ("PARQUET", "lakeload"): 0.55,
    ("PARQUET", "lakeload-jvm"): 0.85,
}
PEAK_BAR = 1.15


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

    rows: int
    runs: int
    heap: str
    cores: int
    bars_from_rows: int


def summary(runs: Sequence[Run], setting: Setting) -> tuple[str, bool]:
    """The report as Markdown, and whether every bar that these runs can measure was met."""
    timed = [run for run in runs if run.rows == setting.rows]
    large = [run for run in runs if run.rows != setting.rows]
    lines = [*_heading(setting, timed), ""]
    verdicts: list[tuple[str, bool]] = []
    for form in dict.fromkeys(run.form for run in timed):
        of_form = [run for run in timed if run.form == form]
        lines += [*_table(form, of_form), "", *comparisons(of_form), ""]
        if setting.rows >= setting.bars_from_rows:
            verdicts += _cpu_verdicts(form, of_form)
    memory_lines, memory_verdicts = _memory(timed, large)
    lines += memory_lines
    verdicts += memory_verdicts if setting.rows >= setting.bars_from_rows else []
    lines += _bars(verdicts, setting)
    return "\n".join(lines), all(met for _, met in verdicts)


def write_results(text: str, folder: Path) -> Path:
    """Write the report as `YYYY-MM-DD.md`, or `-2`, `-3`… when the day has one already."""
    folder.mkdir(parents=True, exist_ok=True)
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    path, number = folder / f"{day}.md", 1
    while path.exists():
        number += 1
        path = folder / f"{day}-{number}.md"
    path.write_text(text + "\n", encoding="utf-8")
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


def _cpu_verdicts(form: str, runs: Sequence[Run]) -> list[tuple[str, bool]]:
    verdicts = []
    for (of_form, name), bar in CPU_BARS_AGAINST_SPARK.items():
        if of_form != form or not {name, "spark"} <= set(names(runs)):
            continue
        ratio = median(runs, name, cpu) / median(runs, "spark", cpu)
        text = f"{form}: {name}'s CPU {ratio:.2f} × Spark's own writer, bar ≤ {bar}"
        verdicts.append((text, ratio <= bar))
    return verdicts


def _memory(timed: Sequence[Run], large: Sequence[Run]) -> tuple[list[str], list[tuple[str, bool]]]:
    """lakeload's peak at the second size against the first."""
    lines, verdicts = [], []
    for run in large:
        same = [other for other in timed if other.form == run.form]
        small = median(same, "lakeload", peak)
        ratio = peak(run) / small
        text = (
            f"{run.form}: peak {peak(run):,.0f} MiB at {run.rows:,} rows, {small:,.0f} MiB at "
            f"{same[0].rows:,}: {ratio:.2f} ×, bar ≤ {PEAK_BAR}"
        )
        lines.append(f"- {text} ({cpu(run):.1f} s CPU, {wall(run):.1f} s wall)")
        verdicts.append((text, ratio <= PEAK_BAR))
    return (["## Memory with more rows", "", *lines, ""] if lines else []), verdicts


def _bars(verdicts: list[tuple[str, bool]], setting: Setting) -> list[str]:
    if not verdicts:
        return [f"Bars are judged from {setting.bars_from_rows:,} rows on; start-up weighs here."]
    return ["## Bars", "", *(f"- {'met' if met else 'MISSED'}: {text}" for text, met in verdicts)]


def _heading(setting: Setting, runs: Sequence[Run]) -> list[str]:
    return [
        f"# Benchmark of {datetime.now(UTC).strftime('%Y-%m-%d %H:%M')} UTC",
        "",
        f"{setting.rows:,} rows × 13 columns, 18 written; median of {setting.runs} interleaved "
        f"runs; `local[{setting.cores}]`, heap {setting.heap}; every output verified.",
        "",
        *facts(PACKAGES),
        f"- CPU: {', '.join(sorted({run.cost.method for run in runs}))}; peak: sampled PSS of the "
        "tree; the AWS emulator is in neither",
        "- `_supa_index`: lakeload and duckdb dense, spark `monotonically_increasing_id()`; "
        "lakeload writes to S3 with its commit protocol, the others to a local folder",
    ]
