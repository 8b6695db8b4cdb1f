"""The report of the Iceberg benchmark: tables in Markdown, ratios both ways, the bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from bench.figures import comparisons, cpu, median, names, peak, wall, with_range
from bench.iceberg.loads import LOADS, Load
from bench.iceberg.setting import Run, Setting
from bench.machine import facts

Verdict = tuple[str, bool]
"""A bar in words, and whether it was met."""

PACKAGES = ("lakeload", "pyspark", "pyiceberg", "pyarrow", "ministack", "boto3")
MERGE_BAR = 0.85
"""lakeload's CPU against a bare MERGE, medians."""
FLAT_BAR = 1.1
"""Peak memory of a load with many partitions against one with few."""


def summary(setting: Setting, runs: Sequence[Run], remarks: Sequence[str]) -> tuple[str, bool]:
    """The report as Markdown, and whether every bar of what was run was met."""
    lines = [*_heading(setting, runs), ""]
    verdicts: list[Verdict] = []
    finished = [run for run in runs if not run.why]
    for load in LOADS:
        of_load = [run for run in finished if run.what == load.what]
        if of_load:
            title = load.title.format(rows=f"{setting.data.rows:,}")
            lines += [f"## {title}", "", *_table(of_load), "", *comparisons(of_load), ""]
            verdicts += _load_verdicts(load, of_load)
        flat = [run for run in finished if run.what == load.flat]
        if of_load and flat:
            verdicts.append(_flat(load, of_load, flat))
    merges = [run for run in finished if run.what == "merge"]
    if merges:
        title = f"Upsert of {setting.changes:,} changes into {setting.data.rows:,} rows"
        lines += [f"## {title}", "", *_table(merges), "", *comparisons(merges)]
        lines += [*(f"- {remark}" for remark in remarks), ""]
        verdicts.append(_verdict("merge", merges, "CPU", cpu, MERGE_BAR))
    lines += ["## Bars", "", *(f"- {'met' if met else 'MISSED'}: {say}" for say, met in verdicts)]
    return "\n".join(lines), all(met for _, met in verdicts)


def unfinished(setting: Setting, run: Run, done: int, lakeload: float) -> str:
    """What a run that did not finish has to say for itself; `lakeload` is its median CPU."""
    cost = run.cost
    spent = f"{cost.cpu:.1f} s CPU, {cost.wall:.1f} s wall, peak {peak(run):,.0f} MiB"
    text = f"{run.name} {run.why}: {done:,} of {setting.changes:,} changes were in the table"
    ratio = (
        f"; lakeload did all of them in {lakeload / cost.cpu:.2f} × that CPU" if cost.cpu else ""
    )
    return f"{text} ({spent}){ratio}."


def _table(runs: Sequence[Run]) -> list[str]:
    lines = [
        "| contestant | runs | CPU s (range) | wall s (range) | peak MiB |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(names(runs), key=lambda name: median(runs, name, cpu)):
        cells = [
            name,
            str(sum(run.name == name for run in runs)),
            with_range(runs, name, cpu),
            with_range(runs, name, wall),
            f"{median(runs, name, peak):,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _load_verdicts(load: Load, runs: Sequence[Run]) -> list[Verdict]:
    if not load.peer:
        return [(f"{load.what}: every run ended with a heap of {load.heap}", True)]
    bars = (("CPU", cpu, load.cpu_bar), ("wall time", wall, load.wall_bar))
    return [_verdict(load.what, runs, measured, value, bar) for measured, value, bar in bars if bar]


def _flat(load: Load, runs: Sequence[Run], others: Sequence[Run]) -> Verdict:
    ratio = median(runs, "lakeload", peak) / median(others, "lakeload", peak)
    text = f"{load.what}: peak memory {ratio:.2f} × that of `{load.flat}`, bar ≤ {FLAT_BAR}"
    return text, ratio <= FLAT_BAR


def _verdict(
    what: str, runs: Sequence[Run], measured: str, value: Callable[[Run], float], bar: float
) -> Verdict:
    ratio = median(runs, "lakeload", value) / median(runs, "spark", value)
    costs = {(run.name, run.number): value(run) for run in runs}
    rounds = [number for name, number in costs if name == "spark"]
    pairs = [costs["lakeload", number] / costs["spark", number] for number in rounds]
    text = (
        f"{what}: {measured} {ratio:.2f} × Spark alone (rounds {min(pairs):.2f}–"
        f"{max(pairs):.2f}), bar ≤ {bar}"
    )
    return text, ratio <= bar


def _heading(setting: Setting, runs: Sequence[Run]) -> list[str]:
    methods = sorted({run.cost.method for run in runs if run.cost.cpu})
    return [
        f"# Iceberg benchmark of {datetime.now(UTC).strftime('%Y-%m-%d %H:%M')} UTC",
        "",
        f"13 columns, 18 written, through AWS Glue of the emulator and an assumed role; median of "
        f"{setting.runs} interleaved rounds, the peers in the first {setting.peer_runs}; "
        f"`local[{setting.cores}]`, heap {setting.heap}; every table counted.",
        "",
        *facts(PACKAGES),
        f"- CPU: {', '.join(methods)}; peak: sampled PSS of the tree; the AWS emulator is in "
        "neither",
        f"- A peer is stopped after {setting.limits.seconds:.0f} s or at "
        f"{setting.limits.memory / 2**20:,.0f} MiB",
    ]
