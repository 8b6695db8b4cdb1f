"""The job history of a document's lake, for commands that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from lakeload.connections import Connections
from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.documents.spec import destination_spec
from lakeload.history.day import HistoryDay, HistoryJob, merge
from lakeload.history.store import (
    HistoryStore,
    LakeHistory,
    LocalHistory,
    is_in_lake,
    past_jobs,
)
from lakeload.launch.run_folder import runs_directory
from lakeload.probes.connection import preflight


class PastJobs:
    """The history in the lake, and what this machine has noted and not moved there yet.

    Raises `Refused` where the lake cannot be reached.
    """

    def __init__(
        self, document: PipelineDocument | DestinationDocument, environment: Mapping[str, str]
    ) -> None:
        destination = destination_spec(document.destination)
        self.stores: list[HistoryStore] = [LocalHistory(runs_directory(environment), destination)]
        if is_in_lake(destination):
            connections = Connections(destination, "runs")
            preflight(connections)
            self.stores.append(LakeHistory(connections.patient, destination))
        self._pipeline = document.model.name if isinstance(document, PipelineDocument) else None

    @property
    def pipelines(self) -> list[str]:
        """The pipeline of the document; of a destination all that have a history."""
        if self._pipeline is not None:
            return [self._pipeline]
        return sorted({name for store in self.stores for name in store.pipelines()})

    def jobs(
        self, keeps: Callable[[HistoryJob], bool], limit: int, since: datetime | None
    ) -> tuple[HistoryJob, ...]:
        """Return the newest jobs that `keeps` takes, newest first."""
        return past_jobs(self.stores, self.pipelines, keeps, limit, since)

    def state(self, pipeline: str) -> HistoryDay | None:
        """Return a day with the state of a pipeline and its tables after the last job; None where
        no job is known."""
        found: HistoryDay | None = None
        for store in reversed(self.stores):
            for name in store.days(pipeline)[-1:]:
                stored = store.read(pipeline, name)
                if stored is not None:
                    found = merge(found, stored.day) if found is not None else stored.day
        return found
