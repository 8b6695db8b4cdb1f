"""Target claims: each source table of a pipeline keeps the target it was first loaded into.

A table's own log cannot tell that its source has moved away. So the first load of a source claims
its target right before its commit, in one small object per (pipeline, source). The logs stay the
truth: a claim without a load behind it stops nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.layout import TableLocation, binding_key
from lakeload_jobs.formats.parquet.log.records import damaged, decode, encode, tool_version
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class Binding:
    """The claim: this source of this pipeline goes into this table of the destination."""

    KIND: ClassVar[str] = "BINDING"

    tool: str
    pipeline: str
    source: str
    schema: str
    table: str


class Bindings:
    """The claims below one prefix. Every method may raise `AwsError`."""

    def __init__(self, objects: Objects, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix

    def check(self, pipeline: str, source: str, target: TableLocation) -> None:
        """Raise `InvalidInput` when the source has been loaded into another table. Only reads."""
        # A missing object is the rule here, and 403 under a policy that lists one prefix only.
        self._stop_if_elsewhere(self._read(pipeline, source), target)

    def check_and_claim(self, pipeline: str, source: str, target: TableLocation) -> None:
        """The same before a first commit, and claim the target for it: one request if nobody did.

        Two first commits of one source into two tables at the same moment may both pass.
        """
        key = binding_key(self._prefix, pipeline, source)
        claim = encode(Binding(tool_version(), pipeline, source, target.schema, target.table))
        if self._objects.put_if_absent(key, claim):
            return
        found = self._read(pipeline, source)
        self._stop_if_elsewhere(found, target)
        if found is None or not self._is(found, target):
            self._objects.put(key, claim)

    def release(self, pipeline: str, source: str, target: TableLocation) -> None:
        """Give up the claim when it is for this table: after its reset. Needs s3:DeleteObject."""
        key = binding_key(self._prefix, pipeline, source)
        found = self._read(pipeline, source)
        if found is None or not self._is(found, target):
            return
        if entry := self._objects.find(key):
            self._objects.delete(key, entry.etag)

    def _read(self, pipeline: str, source: str) -> Binding | None:
        key = binding_key(self._prefix, pipeline, source)
        data = self._objects.get(key, denied_is_missing=True)
        if data is None:
            return None
        url = self._objects.url(key)
        found = decode(Binding, data, url)
        if (found.pipeline, found.source) != (pipeline, source):
            raise damaged(url, f"it is of `{found.source}` of the pipeline `{found.pipeline}`")
        try:
            TableLocation(self._prefix, found.schema, found.table)
        except ValueError as error:
            raise damaged(url, str(error)) from error
        return found

    def _is(self, binding: Binding, target: TableLocation) -> bool:
        return (binding.schema, binding.table) == (target.schema, target.table)

    def _stop_if_elsewhere(self, binding: Binding | None, target: TableLocation) -> None:
        if binding is None or self._is(binding, target):
            return
        old = TableLocation(self._prefix, binding.schema, binding.table)
        if (number := self._loaded(binding, old)) is None:
            return
        raise InvalidInput(
            f"pipeline `{binding.pipeline}` loads `{binding.source}` into `{old.data_path}` "
            f"(record {number}), and would now load it into `{target.data_path}`",
            hint=(
                "restore the setting that has changed (`name`, `namespace`, "
                "`destination_prefix`, `glue_database_prefix` or `update_glue_catalog`), or "
                "load everything into the new table with another `name` for the pipeline"
            ),
        )

    def _loaded(self, binding: Binding, location: TableLocation) -> int | None:
        """Return the newest record of the claim in the claimed table, None without any."""
        settler = Settler(self._objects, location)
        known = settler.foresee(settler.log.read()).history.pipelines.get(binding.pipeline)
        return known.latest if known and known.source == binding.source else None
