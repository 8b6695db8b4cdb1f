"""What the probes of Nessie's native interface do: on a branch of the test's own, so that the
history of the real one keeps nothing of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cached_property

from lakeload.policy.iam.glue import PROBE_MARK_LENGTH
from lakeload.probes.runner import Deadline, succeeds
from lakeload.probes.writing import Writing
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import Patience
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi


@dataclass
class ProbeNessie:
    """The probes of one test."""

    destination: DestinationSpec
    session: AwsSession
    patience: Patience
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:PROBE_MARK_LENGTH])
    _head: str = ""
    _tried: bool = False
    _writing: Writing = field(default_factory=Writing)

    @property
    def branch(self) -> str:
        """The name of the test's branch."""
        return f"lakeload_probe_{self._mark}"

    @cached_property
    def api(self) -> NessieApi:
        """The way to Nessie."""
        return NessieApi(self.destination.iceberg.catalog, self.session, self.patience)

    def reach(self) -> str:
        """Nessie answers."""
        return f"its default branch is `{self.api.reach()}`"

    def find(self) -> str:
        """The branch is there."""
        self._head = self.api.head(self.destination.iceberg.catalog.ref)
        return ""

    def commit(self) -> str:
        """A commit goes in."""
        source = self.destination.iceberg.catalog.ref
        head = self._head or self.api.head(source)
        with self._writing:
            self._tried = True
            self.api.create_branch(self.branch, source, head)
            self.api.commit_namespace(self.branch, head, self.branch)
        return f"on the branch `{self.branch}`; commits to `{source}` itself stay unproven"

    def drop(self) -> str:
        """The branch can be deleted."""
        try:
            self.api.delete_branch(self.branch, self.api.head(self.branch))
        except CatalogError as error:
            if not error.missing:
                raise
        self._tried = False
        return ""

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Delete the branch; return what could not be removed."""
        with self._writing.ended(deadline):
            if not self._tried or succeeds(self._remove, deadline):
                return ()
        return (f"Nessie's branch `{self.branch}`",)

    def _remove(self) -> None:
        self.drop()
