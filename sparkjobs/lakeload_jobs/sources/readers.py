"""The identities that read the sources of one run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.sources.paths.objects import SourceObjects


class SourceReaders:
    """The identities that read the tables of one run, each with its clients. Thread-safe.

    Nothing is called before somebody lists. `session` is the destination's, whose identity reads
    what names no credentials of its own. `drivers` returns a JDBC driver by its class; None where
    there is no Java.
    """

    def __init__(
        self,
        destination: DestinationSpec,
        session: AwsSession,
        drivers: Callable[[str], Any] | None = None,
    ) -> None:
        self._destination = destination
        self.session = session
        self.drivers = drivers
        self._lock = threading.Lock()
        self._objects: dict[str, SourceObjects] = {}

    def identity(self, source: FilesInput) -> DestinationSpec:
        """Return the destination with the credentials that read `source`: region, endpoints and
        addressing style are the same on both sides."""
        credentials = source.credentials or self._destination.credentials
        return replace(self._destination, credentials=credentials)

    def objects(self, source: FilesInput) -> SourceObjects:
        """Return what lists with the identity that reads `source`, the same for all its tables."""
        identity = self.identity(source)
        with self._lock:
            key = repr(identity.credentials)
            if key not in self._objects:
                reader = self.session.reading(source.credentials)
                self._objects[key] = SourceObjects(reader)
            return self._objects[key]
