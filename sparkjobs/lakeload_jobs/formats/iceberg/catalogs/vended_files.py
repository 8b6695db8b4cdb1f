"""Metadata files of one table, with the credentials that its catalog vends for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.vended_credentials import HandedKeys, s3_with
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles, Store
from lakeload_jobs.formats.iceberg.catalogs.reading import read_table
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
MARGIN_SECONDS = 300.0
"""Credentials are renewed this long before they expire, or at half of their life if that is
shorter."""

_EXPIRES = "s3.session-token-expires-at-ms"
_Result = TypeVar("_Result")


def vended_keys(config: Mapping[str, str], region: str) -> HandedKeys | None:
    """Return the keys in what a catalog says for a table, for a bucket of `region` unless it says
    otherwise; None when there are none."""
    key, secret = config.get("s3.access-key-id"), config.get("s3.secret-access-key")
    if not key or not secret:
        return None
    token = config.get("s3.session-token")
    return HandedKeys(
        access_key_id=key,
        secret_access_key=Secret(secret),
        session_token=Secret(token) if token else None,
        region=config.get("s3.region") or config.get("client.region") or region,
        endpoint=config.get("s3.endpoint"),
        path_style=str(config.get("s3.path-style-access", "")).lower() == "true",
    )


@dataclass(frozen=True)
class VendedStore:
    """S3 with vended credentials."""

    s3: S3Client

    @classmethod
    def of(cls, keys: HandedKeys, destination: DestinationSpec) -> VendedStore:
        """Return the store that the keys are for. Raises `AwsError`."""
        endpoint = destination.endpoints.s3
        if keys.endpoint is None and endpoint:
            # A catalog that says nothing of its store leaves that to the destination.
            keys = replace(keys, endpoint=endpoint, path_style=True)
        client = s3_with(keys, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
        return cls(client)


def files_for(
    table: ReadTable, destination: DestinationSpec, session: AwsSession, tables: TableStore
) -> LakeFiles:
    """Return the metadata files of a table: with the credentials that its catalog has vended with
    it, else with the destination's own. `tables` are asked for new ones. Asks nobody itself."""
    if vends(destination.iceberg.catalog) and any(
        vended_keys(config, destination.region) for config in _configs(table).values()
    ):
        return VendedFiles(table, destination, session, tables)
    return LakeFiles(session, destination)


class VendedFiles(LakeFiles):
    """Metadata files, with credentials that are renewed shortly before they expire. Thread-safe.
    Methods raise `CatalogError` too, where the catalog vends no new ones."""

    def __init__(
        self,
        table: ReadTable,
        destination: DestinationSpec,
        session: AwsSession,
        tables: TableStore,
    ) -> None:
        super().__init__(session, destination)
        self._destination = destination
        self._tables = tables
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._take(table)

    def read(self, location: str) -> bytes:
        """Return a whole file."""
        read = super().read
        return self._with_keys(lambda: read(location))

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file."""
        write = super().write
        self._with_keys(lambda: write(location, data))

    def delete(self, location: str) -> None:
        """Delete a file; a missing one is no error."""
        delete = super().delete
        self._with_keys(lambda: delete(location))

    def place(self, location: str) -> str:
        """Return where a location is: one request can delete files of the same place."""
        with self._lock:
            prefix = self._prefix(location)
        return f"{super().place(location)} {prefix}"

    def delete_together(self, locations: Sequence[str]) -> Collection[str]:
        """Delete files of one place in one request; return those that stay."""
        delete = super().delete_together
        return self._with_keys(lambda: delete(locations))

    def _prefix(self, location: str) -> str:
        return max((one for one in self._configs if location.startswith(one)), key=len)

    def client(self, location: str) -> S3Client:
        """Return the client whose credentials are for the location."""
        with self._lock:
            prefix = self._prefix(location)
            if prefix not in self._stores:
                keys = vended_keys(self._configs[prefix], self._destination.region)
                self._stores[prefix] = (
                    self.session if keys is None else VendedStore.of(keys, self._destination)
                )
            return self._stores[prefix].s3

    def _with_keys(self, call: Callable[[], _Result]) -> _Result:
        with self._renewing:
            if time.time() >= self._renew_at:
                self._renew()
            used = self._table
        try:
            return call()
        except AwsError as error:
            if not error.expired:
                raise self._refused(error) from error
        # Not every catalog says when its credentials expire. Nothing was done with these.
        with self._renewing:
            if self._table is used:
                self._renew()
        try:
            return call()
        except AwsError as error:
            raise self._refused(error) from error

    def _renew(self) -> None:
        table = read_table(self._tables, self._table.namespace, self._table.name)
        if table is None:
            # It was dropped, and its files are being removed: there are no other credentials.
            self._renew_at = float("inf")
        else:
            self._take(table)

    def _take(self, table: ReadTable) -> None:
        configs, now = _configs(table), time.time()
        ends = [int(one[_EXPIRES]) / 1000 for one in configs.values() if _EXPIRES in one]
        life = min(ends) - now if ends else float("inf")
        with self._lock:
            self._table = table
            self._configs = configs
            self._stores: dict[str, Store] = {}
            self._renew_at = now + max(life - min(MARGIN_SECONDS, life / 2), 0)

    def _refused(self, error: AwsError) -> AwsError:
        if error.denied and not error.explicit_deny:
            error.hint = (
                f"allow `{error.action}` on this resource in the policy of the role that the "
                "catalog vends credentials of"
            )
        return error


def _configs(table: ReadTable) -> dict[str, Mapping[str, str]]:
    """Return what the catalog says for files, by the beginning of their locations."""
    common = table.config or {}
    own = {prefix: {**common, **config} for prefix, config in table.credentials}
    return {"": common, **own}
