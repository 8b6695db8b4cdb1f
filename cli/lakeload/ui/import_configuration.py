"""Output of `lakeload import`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakeload.config.secret_names import printable, shown
from lakeload.ui import console
from lakeload.ui.errors import say
from lakeload.ui.init import Initialized, show_files, show_next
from lakeload.ui.init import to_document as files_document
from lakeload.ui.json_documents import ImportDocument
from lakeload.ui.problems import problems_json
from lakeload_jobs.core.sizes import counted

if TYPE_CHECKING:
    from lakeload.config.problems import Problem
    from lakeload.init.imported import Carried, Imported

_SHOWN = 200
"""The longest name of a setting that is shown."""


@dataclass(frozen=True)
class ImportResult:
    """The configuration, the files that it became, and what `validate` finds in these."""

    imported: Imported
    written: Initialized
    problems: Sequence[Problem] = ()


def show_text(result: ImportResult) -> None:
    """Show the files, what is not carried over, the variables and the next commands."""
    carried = [one for _, one in _carried(result.imported) if one.theirs]
    title = result.imported.product.title
    console.answer(f"{title}: {counted(len(carried), 'setting')} carried over")
    show_files(result.written)
    if result.imported.left_out:
        console.answer("\nNot carried over:")
        for left in result.imported.left_out:
            console.answer(f"  {shown(left.setting, _SHOWN)}: {left.reason}")
    for problem in result.problems:
        name = Path(problem.path).name
        say(console.err, "warning", f"{name}, line {problem.line}: {problem.message}")
        if problem.hint:
            say(console.err, " hint", problem.hint)
    show_next(result.written)


def show_json(result: ImportResult) -> None:
    """Print the documented JSON answer; fields are only ever added."""
    console.show_json(to_document(result))


def to_document(result: ImportResult) -> ImportDocument:
    """Return the JSON answer (docs/migrating.md)."""
    imported = result.imported
    files = files_document(result.written)
    return {
        "product": imported.product.title,
        "dry_run": files["dry_run"],
        "files": files["files"],
        "settings": [
            {
                "setting": printable(one.theirs) or None,
                "here": here,
                "difference": one.differs or None,
            }
            for here, one in _carried(imported)
        ],
        "not_carried_over": [
            {"setting": printable(left.setting), "reason": left.reason}
            for left in imported.left_out
        ],
        "variables": files["variables"],
        "next": files["next"],
        "problems": problems_json(
            [replace(one, path=Path(one.path).name) for one in result.problems]
        ),
    }


def _carried(imported: Imported) -> Iterator[tuple[str, Carried]]:
    """Yield every setting that was carried over or added, by where it is here."""
    for home, settings in (
        ("destination", imported.destination),
        ("pipeline", imported.pipeline),
        *((f"pipeline.tables[{i}]", table.settings) for i, table in enumerate(imported.tables)),
    ):
        yield from ((f"{home}.{path}", one) for path, one in settings.items())
