"""What a type of source is: the settings it has, and what follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args

from lakeload.config.model import Finding, Model
from lakeload.config.scalars import Text
from lakeload_jobs.contract.secrets import SecretReference


class SourceSettings(Model):
    """Where the data comes from."""

    type: str
    """A `Literal` in each type of source: its name."""


class TableSettings(Model):
    """What a table says of its source."""

    table: Text
    """The source table's name; for FILES a name of your choice, dots included."""


S = TypeVar("S", bound=SourceSettings)
T = TypeVar("T", bound=TableSettings)
I = TypeVar("I")  # noqa: E741


class SourceType(ABC, Generic[S, T, I]):
    """One type of source. `I` is what the job is told of each of its tables."""

    settings: ClassVar[type[SourceSettings]]
    """What stands under `source`."""
    table: ClassVar[type[TableSettings]]
    """What each table has beside the settings that all tables have."""

    @property
    def name(self) -> str:
        """What `source.type` says."""
        (name,) = get_args(self.settings.model_fields["type"].annotation)
        return str(name)

    @abstractmethod
    def written(self, source: S, table: T) -> I:
        """Return what a table is read from as the document has it: paths as they are written, and
        nothing of who reads."""

    @abstractmethod
    def resolved(self, written: I, source: S, folder: Path) -> I:
        """Return the same for the job: paths absolute, `folder` being the document's, and who
        reads."""

    @abstractmethod
    def identity(self, written: I) -> Mapping[str, Any]:
        """Return the settings that decide which rows are read, each by name.

        Fingerprints in the logs cover them: one that comes later takes part only where it is given.
        """

    def findings(self, source: Any, tables: Sequence[tuple[int, T]]) -> Iterator[Finding]:
        """Yield what no single setting can tell. `source` is what stands there, valid or not;
        `tables` are those that are valid, with their places."""
        yield from ()

    def references(self, source: Any) -> Mapping[str, SecretReference]:
        """Return the secrets that reading takes, by their paths. `source` may be invalid."""
        return {}

    def remote_findings(self, tables: Sequence[tuple[int, T]], master: str) -> Iterator[Finding]:
        """Yield what tasks on other machines than this one cannot read."""
        yield from ()
