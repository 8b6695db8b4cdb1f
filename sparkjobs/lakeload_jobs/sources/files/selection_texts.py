"""What the user is told of the files that an incremental load chose."""

from __future__ import annotations

from lakeload_jobs.sources.files.selection import Selection

_SHOWN = 5


def selection_warnings(selection: Selection | None, *, reload: bool) -> tuple[str, ...]:
    """Return what may double rows: new versions of files, and a reload."""
    found = []
    if reload and selection is None:
        found.append("`--reload` changes nothing here: without `incremental` all is loaded always")
    elif reload and selection is not None:
        found.append(
            f"`--reload` appended all files ({len(selection.files):,}) whatever had been loaded "
            f"before ({selection.known:,} of them had)"
        )
    elif selection is not None and selection.again:
        shown = ", ".join(f"`{path}`" for path in selection.again[:_SHOWN])
        more = len(selection.again) - _SHOWN
        found.append(
            f"loaded again, all rows, because the file has changed since it was loaded: {shown}"
            + (f" and {more:,} more" if more > 0 else "")
        )
    return tuple(found)
