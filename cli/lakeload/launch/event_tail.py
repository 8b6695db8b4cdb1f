"""Reads events.jsonl while the driver appends to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from lakeload_jobs.contract.codec import CodecError, from_json
from lakeload_jobs.contract.events import Event

LONGEST_LINE = 1024 * 1024
CHUNK = 1024 * 1024


class EventTail:
    """The events written since the last look; half a line waits for its other half."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False
        self.unreadable = 0
        """Lines that are no event of this contract: counted, never fatal."""

    def read(self) -> list[Event]:
        """Return the events that have arrived, at most `CHUNK` bytes of them."""
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return []
        *lines, self._rest = (self._rest + self._file.read(CHUNK)).split(b"\n")
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        if len(self._rest) > LONGEST_LINE:
            self.unreadable += not self._skipping
            self._rest, self._skipping = b"", True
        return [event for line in lines if line.strip() and (event := self._parse(line))]

    def drain(self) -> list[Event]:
        """Return everything that is left, once the writer has ended."""
        events = []
        while True:
            before = self._file.tell() if self._file else 0
            events += self.read()
            if self._file is None or self._file.tell() == before:
                break
        if self._rest.strip() and not self._skipping:
            last = self._parse(self._rest)
            events += [last] if last else []
            self._rest = b""
        return events

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def _parse(self, line: bytes) -> Event | None:
        try:
            return from_json(Event, json.loads(line))
        except (ValueError, CodecError, RecursionError):
            self.unreadable += 1
            return None
