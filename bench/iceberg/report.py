"""The report of the Iceberg benchmark: tables in Markdown, ratios both ways, the bars."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bench.figures import comparisons, cpu, median, names, peak, wall, with_range
from bench.iceberg.setting import Run, Setting
from bench.machine import facts

PACKAGES = ("lakeload", "pyspark", "pyiceberg", "pyarrow", "ministack", "boto3")
BARS = {"append": 0.7, "merge": 1.25}
"""lakeload's CPU against Spark alone, medians."""


def summary(setting: Setting, runs: Sequence[Run], remarks: Sequence[str]) -> tuple[str, bool]:
    """The report as Markdown, and whether both bars were met."""
    titles = {
        "append": f"Append of {setting.data.rows:,} rows to a new table",
        "merge": f"Upsert of {setting.changes:,} changes into {setting.data.rows:,} rows",
    }
    lines = [*_heading(setting, runs), ""]
    verdicts = []
    for what, title in titles.items():
        finished = [run for run in runs if run.what == what and not run.why]
        lines += [f"## {title}", "", *_table(finished), "", *comparisons(finished)]
        if what == "merge":
            lines += [f"- {remark}" for remark in remarks]
        lines.append("")
        verdicts.append(_verdict(what, finished))
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


def _verdict(what: str, runs: Sequence[Run]) -> tuple[str, bool]:
    ratio = median(runs, "lakeload", cpu) / median(runs, "spark", cpu)
    costs = {(run.name, run.number): run.cost.cpu for run in runs}
    rounds = [number for name, number in costs if name == "spark"]
    pairs = [costs["lakeload", number] / costs["spark", number] for number in rounds]
    text = (
        f"{what}: CPU {ratio:.2f} × Spark alone (rounds {min(pairs):.2f}–{max(pairs):.2f}), "
        f"bar ≤ {BARS[what]}"
    )
    return text, ratio <= BARS[what]


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
