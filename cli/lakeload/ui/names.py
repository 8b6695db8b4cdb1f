"""Names of tables that are too long for their column of the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from lakeload.config.secret_names import printable

_PARTS = re.compile(r"[^_./-]*[_./-]*")


@dataclass(frozen=True)
class Name:
    """A name in a column: where it is folded, a line ends behind `_`, `.`, `/` or `-`."""

    text: str

    def lines(self, width: int) -> Iterator[str]:
        """Yield the lines of a column that is so wide; a part that is wider is cut."""
        line = ""
        for part in _PARTS.findall(printable(self.text)):
            if line and cell_len(line + part) > width:
                yield line
                line = ""
            *cut, rest = chop_cells(line + part, width) or [""]
            yield from cut
            line = rest
        yield line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("\n".join(self.lines(options.max_width)), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = max(map(cell_len, self.lines(max(1, options.max_width))))
        return Measurement(width, width)
