"""Whether files of a table may be removed: asked first, as Iceberg only logs what S3 refuses."""

from __future__ import annotations

import uuid

from py4j.protocol import Py4JJavaError

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.load.java import caused_by
from lakeload_jobs.formats.iceberg.maintain.work import Work


def check_deleting(work: Work) -> None:
    """Raise `LoadFailed`, naming action and key, where an object of the table may not be deleted.

    The object does not exist: S3 looks at permissions first, and deleting nothing is no error. Its
    name is that of a manifest: a bucket for tables alone denies all but Iceberg's.
    """
    location = str(work.table.location()).rstrip("/")
    key = f"{location}/metadata/{uuid.uuid4()}-m0.avro"
    try:
        work.table.io().deleteFile(key)
    except Py4JJavaError as error:
        if caused_by(error, "AccessDeniedException"):
            raise denied(work.target, key, location) from error
        raise


def denied(target: str, key: str, location: str) -> LoadFailed:
    """Return the error of an identity that may not delete."""
    bucket, _, path = location.partition("://")[2].partition("/")
    return LoadFailed(
        f"removing files of `{target}`: access denied to `{key}` (`s3:DeleteObject`)",
        hint=f"allow `s3:DeleteObject` on `arn:aws:s3:::{bucket}/{path}/*`: `lakeload policy` with "
        "`--with maintain` writes the policy",
    )
