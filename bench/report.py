"""Runs → medians, ratios, bars, and the dated Markdown file under bench/results."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Measurement

PACKAGES = ("lakeload", "pyspark", "pyarrow", "arro3-io", "duckdb", "ministack", "boto3")
CPU_BAR_AGAINST_SPARK = 0.85
PEAK_BAR = 1.15
MEBIBYTE = 2**20


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
        lines += [*_table(form, of_form), "", *_comparisons(of_form), ""]
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


def _median(runs: Sequence[Run], name: str, value: Callable[[Run], float]) -> float:
    return statistics.median(value(run) for run in runs if run.name == name)


def _cpu(run: Run) -> float:
    return run.cost.cpu


def _wall(run: Run) -> float:
    return run.cost.wall


def _peak(run: Run) -> float:
    return run.cost.peak / MEBIBYTE


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.name for run in runs))


def _table(form: str, runs: Sequence[Run]) -> list[str]:
    """Median and range of every contestant on one input form."""
    size = runs[0].input_bytes / 1e6
    lines = [
        f"## {form.capitalize() if form != 'CSV' else form} → gzip Parquet ({size:,.0f} MB in)",
        "",
        "| contestant | CPU s (range) | wall s (range) | peak MiB | out MB | files |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted(_names(runs), key=lambda name: _median(runs, name, _cpu)):
        cells = [
            name,
            _with_range(runs, name, _cpu),
            _with_range(runs, name, _wall),
            f"{_median(runs, name, _peak):,.0f}",
            f"{_median(runs, name, lambda run: run.output_bytes / 1e6):,.1f}",
            f"{_median(runs, name, lambda run: run.files):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _with_range(runs: Sequence[Run], name: str, value: Callable[[Run], float]) -> str:
    values = [value(run) for run in runs if run.name == name]
    return f"**{statistics.median(values):.1f}** ({min(values):.1f}–{max(values):.1f})"


def _comparisons(runs: Sequence[Run]) -> list[str]:
    """lakeload against each peer, in both directions: what was slower is said too."""
    if "lakeload" not in _names(runs):
        return []
    lines = []
    for peer in _names(runs):
        if peer == "lakeload":
            continue
        ratios = [
            ("CPU", _median(runs, "lakeload", _cpu) / _median(runs, peer, _cpu)),
            ("wall", _median(runs, "lakeload", _wall) / _median(runs, peer, _wall)),
            ("peak memory", _median(runs, "lakeload", _peak) / _median(runs, peer, _peak)),
        ]
        worse = [f"{what} ({ratio:.2f} ×)" for what, ratio in ratios if ratio > 1]
        said = ", ".join(f"{what} {ratio:.2f} ×" for what, ratio in ratios)
        verdict = f"worse in {', '.join(worse)}" if worse else "worse in nothing measured here"
        lines.append(f"- lakeload / {peer}: {said}: {verdict}.")
    return lines


def _cpu_verdicts(form: str, runs: Sequence[Run]) -> list[tuple[str, bool]]:
    if not {"lakeload", "spark"} <= set(_names(runs)):
        return []
    ratio = _median(runs, "lakeload", _cpu) / _median(runs, "spark", _cpu)
    text = f"{form}: CPU {ratio:.2f} × Spark's own writer, bar ≤ {CPU_BAR_AGAINST_SPARK}"
    return [(text, ratio <= CPU_BAR_AGAINST_SPARK)]


def _memory(timed: Sequence[Run], large: Sequence[Run]) -> tuple[list[str], list[tuple[str, bool]]]:
    """lakeload's peak at the second size against the first."""
    lines, verdicts = [], []
    for run in large:
        same = [other for other in timed if other.form == run.form]
        small = _median(same, "lakeload", _peak)
        ratio = _peak(run) / small
        text = (
            f"{run.form}: peak {_peak(run):,.0f} MiB at {run.rows:,} rows, {small:,.0f} MiB at "
            f"{same[0].rows:,}: {ratio:.2f} ×, bar ≤ {PEAK_BAR}"
        )
        lines.append(f"- {text} ({_cpu(run):.1f} s CPU, {_wall(run):.1f} s wall)")
        verdicts.append((text, ratio <= PEAK_BAR))
    return (["## Memory with more rows", "", *lines, ""] if lines else []), verdicts


def _bars(verdicts: list[tuple[str, bool]], setting: Setting) -> list[str]:
    if not verdicts:
        return [f"Bars are judged from {setting.bars_from_rows:,} rows on; start-up weighs here."]
    return ["## Bars", "", *(f"- {'met' if met else 'MISSED'}: {text}" for text, met in verdicts)]


def _heading(setting: Setting, runs: Sequence[Run]) -> list[str]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        f"# Benchmark of {datetime.now(UTC).strftime('%Y-%m-%d %H:%M')} UTC",
        "",
        f"{setting.rows:,} rows × 13 columns, 18 written; median of {setting.runs} interleaved "
        f"runs; `local[{setting.cores}]`, heap {setting.heap}; every output verified.",
        "",
        f"- Machine: {_processor()}, {os.cpu_count()} cores, {_memory_size():.0f} GiB, "
        f"{platform.system()} {platform.release()}; load at the end {os.getloadavg()[0]:.1f}",
        f"- Versions: Python {platform.python_version()}, {_java()}, {versions}",
        f"- Commit: {_commit()}",
        f"- CPU: {', '.join(sorted({run.cost.method for run in runs}))}; peak: sampled PSS of the "
        "tree; the AWS emulator is in neither",
        "- `_supa_index`: lakeload and duckdb dense, spark `monotonically_increasing_id()`; "
        "lakeload writes to S3 with its commit protocol, the others to a local folder",
    ]


def _processor() -> str:
    found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _memory_size() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _java() -> str:
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return answer.stderr.splitlines()[0].replace('"', "")


def _commit() -> str:
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"
