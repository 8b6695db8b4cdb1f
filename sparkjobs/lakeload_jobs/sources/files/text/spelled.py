"""Files in which a column has another spelling than in the files before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lakeload_jobs.sources.files.text.batches import TextBatch
from lakeload_jobs.sources.files.text.splits import OpenPiece, Piece, PieceReader
from lakeload_jobs.sources.files.united_columns import SharedNames


@dataclass(frozen=True)
class SpelledReader:
    """Reads files with the names that `shared_names` returns; it travels to the tasks."""

    reader: PieceReader
    shared: SharedNames

    @contextmanager
    def open(self, piece: Piece) -> Iterator[OpenPiece]:
        """Open a piece. Raises what the reader raises."""
        with self.reader.open(piece) as opened:
            yield _SpelledPiece(opened, self.shared.get(piece.file.path, {}))


@dataclass
class _SpelledPiece:
    opened: OpenPiece
    shared: Mapping[str, str]

    def __post_init__(self) -> None:
        self.start = self.opened.start
        self.first_line = self.opened.first_line
        self.notes = self.opened.notes

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.shared.get(name, name) for name in self.opened.names)

    @property
    def cuts(self) -> tuple[Any, ...]:
        return self.opened.cuts

    @property
    def end(self) -> int:
        return self.opened.end

    @property
    def line(self) -> int:
        return self.opened.line

    def batches(self) -> Iterator[TextBatch]:
        for batch in self.opened.batches():
            names = [self.shared.get(name, name) for name in batch.rows.schema.names]
            yield replace(batch, rows=batch.rows.rename_columns(names) if names else batch.rows)
