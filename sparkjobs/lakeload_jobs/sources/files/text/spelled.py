"""Files in which a column has another spelling than in the files before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lakeload_jobs.sources.files.text.batches import TextBatch
from lakeload_jobs.sources.files.text.splits import OpenPart, PartProxy, PartReader, TextPart
from lakeload_jobs.sources.files.united_columns import SharedNames


@dataclass(frozen=True)
class SpelledReader:
    """Reads files with the names that `shared_names` returns; it travels to the tasks."""

    reader: PartReader
    shared: SharedNames

    @contextmanager
    def open(self, part: TextPart) -> Iterator[OpenPart]:
        """Open a part. Raises what the reader raises."""
        with self.reader.open(part) as opened:
            yield _SpelledPart(opened, self.shared.get(part.file.path, {}))


@dataclass
class _SpelledPart(PartProxy):
    shared: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.shared.get(name, name) for name in self.opened.names)

    def batches(self) -> Iterator[TextBatch]:
        for batch in self.opened.batches():
            names = [self.shared.get(name, name) for name in batch.rows.schema.names]
            yield replace(batch, rows=batch.rows.rename_columns(names) if names else batch.rows)
