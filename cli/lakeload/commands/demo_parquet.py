"""The demo of Parquet files: the export of two days, appended, and queried by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from lakeload.commands.demo_run import PREFIX, SCHEMA, Demo
from lakeload.demo.lake import BEST_SELLERS, CITIES, ROWS_OF_EACH_JOB, Answer, query
from lakeload.demo.samples import ORDER_HEADER, Sample, write_samples
from lakeload.ui import demo as screen
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.names import unique_names


def tour(demo: Demo, endpoint: str, days: tuple[date, date]) -> dict[str, Any]:
    """Show everything and return it as a document. Raises `LoadFailed`."""
    lake, (monday, tuesday) = demo.lake, days
    facts = [
        ("endpoint", endpoint),
        ("bucket", lake.bucket),
        ("role", lake.role_arn),
        ("trust", f"only the user {lake.user}, and only with the ExternalId"),
        ("policy", f"list, read and write below {lake.prefix}/; delete probes, never data"),
    ]
    demo.introduce(facts)
    samples = write_samples(demo.folder / "export", monday)
    screen.show_heading(demo.console, "Monday's export of a small shop, as messy as exports are")
    files = [(sample.path.name, f"{sample.rows:,} rows") for sample in samples]
    screen.show_facts(demo.console, [*files, ("columns", _renamed_columns())])
    demo.run("validate", "destination.yml", "pipeline.yml")
    demo.run("test-connection", "destination.yml")
    demo.load("monday")
    loaded = [("monday", sample) for sample in samples]
    screen.show_heading(demo.console, "Any reader understands it; this is DuckDB")
    answers = [_ask(demo, BEST_SELLERS), _ask(demo, CITIES)]
    screen.show_heading(demo.console, "Tuesday's export takes the place of Monday's")
    loaded += [("tuesday", sample) for sample in write_samples(demo.folder / "export", tuesday)]
    demo.load("tuesday")
    screen.show_heading(demo.console, "Appended: every row names the job that loaded it")
    answers.append(_ask(demo, ROWS_OF_EACH_JOB))
    _compare(answers[-1], loaded)
    return {
        "commands": demo.commands,
        "objects": sorted(demo.keys),
        "answers": [asdict(answer) for answer in answers],
    }


def _ask(demo: Demo, sql: str) -> Answer:
    answer = query(demo.folder / "lake" / PREFIX / SCHEMA, sql)
    screen.show_query(demo.console, sql, answer)
    return answer


def _compare(answer: Answer, loaded: Sequence[tuple[str, Sample]]) -> None:
    """Raise `LoadFailed` unless the lake holds exactly the exported rows, numbered without gaps."""
    found = set(answer.rows)
    wanted = {(job, sample.table, sample.rows, sample.rows) for job, sample in loaded}
    if found != wanted:
        raise LoadFailed(
            f"in the demo, the lake holds {sorted(found, key=str)} and not {sorted(wanted)}"
        )


def _renamed_columns() -> str:
    names = zip(ORDER_HEADER, unique_names(ORDER_HEADER), strict=True)
    return ", ".join(f"{source} → {target}" for source, target in names if source != target)
