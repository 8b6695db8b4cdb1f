"""Notes to the user about the files that an incremental load selected."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.sources.files.selection import Selection
from lakeload_jobs.sources.paths.local_listing import link_warnings

_SHOWN = 5


def selection_warnings(selection: Selection | None, *, reload: bool) -> tuple[str, ...]:
    """Return what may double rows or leave some out: new versions of files, and a reload."""
    found = []
    if reload and selection is None:
        found.append(
            "`--reload` reads no more files here: without `incremental` every load reads all"
        )
    elif reload and selection is not None:
        found.append(
            f"`--reload` appended all files ({len(selection.files):,}) including files that "
            f"were loaded before ({selection.known:,} of them had)"
        )
    elif selection is not None and selection.again:
        found.append(
            "loaded again with all rows, because the file has changed since it was loaded: "
            + _shown(selection.again)
        )
    if selection is not None and selection.skipped:
        found.append(
            "not loaded although the file has changed since it was loaded (`on_changed_file: "
            f"SKIP`): {_shown(selection.skipped)}"
        )
    if selection is not None:
        found += link_warnings(selection.files)
    return tuple(found)


def _shown(paths: Sequence[str]) -> str:
    shown = ", ".join(f"`{path}`" for path in paths[:_SHOWN])
    return shown + (f" and {len(paths) - _SHOWN:,} more" if paths[_SHOWN:] else "")
