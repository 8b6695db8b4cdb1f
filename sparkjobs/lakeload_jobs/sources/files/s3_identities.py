"""Who reads the `s3://` input of the tables of one run."""

from __future__ import annotations

import threading
from dataclasses import replace

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.sources.files.s3_listing import SourceObjects


class SourceReaders:
    """The identities that read the tables of one run, each with its clients. Thread-safe.

    Nothing is called before somebody lists. `label` (an attempt id) becomes part of the names of
    the role sessions.
    """

    def __init__(self, destination: DestinationSpec, label: str) -> None:
        self._destination = destination
        self._label = label
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
                self._objects[key] = SourceObjects(AwsSession(identity, label=self._label))
            return self._objects[key]
