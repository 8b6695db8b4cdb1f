"""AWS Glue as an Iceberg catalog, with the identity that writes (F17, F18).

pyiceberg cannot assume a role with an ExternalId: it is handed our client, whose keys renew.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.io import FileIO

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.translate import catalog_call


def open_glue(destination: DestinationSpec, session: AwsSession) -> IcebergCatalog:
    """Return Glue's catalog; nothing is called yet. Raises `AwsError`, `InvalidInput`."""
    place = f"glue.{destination.region}"
    files = LakeFiles(session, destination)
    with catalog_call("opening Glue's catalog", place):
        return IcebergCatalog(_Glue(session.glue, files), place, (), files)


class _Glue(GlueCatalog):
    """pyiceberg's Glue catalog with our client and files."""

    def __init__(self, client: Any, files: LakeFiles) -> None:
        self._files = files
        super().__init__("lakeload", client=client)

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return self._files
