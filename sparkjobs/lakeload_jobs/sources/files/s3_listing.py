"""The objects that the `s3://` paths of a table name, listed before Spark reads them.

What is missing or denied is known here, with its key, bucket and IAM action; Spark would tell it
in the middle of a load. Only what the paths name is listed, so a policy may be limited to it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.bucket import bucket_region
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.files.file_state import (
    S3_SCHEME,
    FileState,
    NoFiles,
    hidden,
    hidden_below,
)
from lakeload_jobs.sources.files.key_patterns import KeyPattern
from lakeload_jobs.sources.files.source_bytes import Bytes

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import (
        ListObjectsV2OutputTypeDef,
        ListObjectsV2RequestTypeDef,
        ObjectTypeDef,
    )

_NEIGHBOURS_SHOWN = 5
_PAGE = 1000
_NO_NAMES = ("", ".", "..")


class SourceObjects:
    """Listing with the identity that reads. Thread-safe."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    def find(self, paths: Sequence[str]) -> Iterator[FileState]:
        """Yield every object that the paths name, and every one below a folder they name.

        Raises `LoadFailed` for a path that names nothing or a key that Hadoop has no name for, and
        `AwsError` naming the IAM action when listing is refused.
        """
        for path in paths:
            yield from self._find(path, KeyPattern.parse(path))

    def read_start(self, file: FileState, size: int) -> bytes:
        """Return the first `size` bytes of an object, fewer if it has fewer, and at least ask for
        it. Raises `AwsError` naming `s3:GetObject`."""
        pattern = KeyPattern.parse(file.path)
        doing = f"reading `{file.path}`"
        with _naming("s3:GetObject", f"{pattern.bucket}/{pattern.key}"), aws_call(doing):
            if file.size == 0:  # a range of nothing is an error
                self._session.s3.head_object(Bucket=pattern.bucket, Key=pattern.key)
                return b""
            answer = self._session.s3.get_object(
                Bucket=pattern.bucket, Key=pattern.key, Range=f"bytes=0-{size - 1}"
            )
            with answer["Body"] as body:
                return body.read(size)

    @contextmanager
    def stream(self, file: FileState, start: int) -> Iterator[Bytes]:
        """Open an object from byte `start` on. Raises `AwsError`, while it is read as well."""
        pattern = KeyPattern.parse(file.path)
        with _naming("s3:GetObject", f"{pattern.bucket}/{pattern.key}"):
            if start >= file.size:  # a range of nothing is an error
                yield io.BytesIO()
                return
            with aws_call(f"reading `{file.path}`"):
                answer = self._session.s3.get_object(
                    Bucket=pattern.bucket, Key=pattern.key, Range=f"bytes={start}-"
                )
                with answer["Body"] as body:
                    yield body

    def region(self, bucket: str) -> str | None:
        """Return the region of a bucket, None when the store does not name it (aws.bucket)."""
        return bucket_region(self._session.s3, bucket)

    def _find(self, path: str, pattern: KeyPattern) -> Iterator[FileState]:
        found = False
        for file in self._named(pattern):
            found = True
            if any(name in _NO_NAMES for name in KeyPattern.parse(file.path).key.split("/")):
                raise LoadFailed(
                    f"`{file.path}` cannot be read: Spark takes `//`, `.` and `..` for other keys",
                    hint="copy the object to another key, or leave it out of the path",
                )
            yield file
        if found:
            return
        if not pattern.magic and hidden(pattern.key.rstrip("/").rpartition("/")[2]):
            raise LoadFailed(
                f"`{path}` cannot be read: Spark skips names that begin with `_` or `.`",
                hint="copy the object to another key",
            )
        raise self._nothing(path, pattern)

    def _named(self, pattern: KeyPattern) -> Iterator[FileState]:
        """Objects of exactly that name win over the wildcards in it, as local files do."""
        found = False
        for file in self._literal(pattern):
            found = True
            yield file
        if found or not pattern.magic:
            return
        for item in self._candidates(pattern):
            root = pattern.root_of(item["Key"])
            if root is not None and not item["Key"].endswith("/"):
                yield _state(pattern.bucket, item, root)

    def _candidates(self, pattern: KeyPattern) -> Iterator[ObjectTypeDef]:
        """List what may match: of one level of folders only those that do are looked into."""
        if not pattern.flat:
            yield from self._list(pattern.bucket, pattern.prefix)
            return
        folders: list[str] = []
        yield from self._list(pattern.bucket, pattern.prefix, folders=folders)
        for folder in folders:
            if pattern.root_of(f"{folder}file") is not None:
                yield from self._list(pattern.bucket, folder)

    def _literal(self, pattern: KeyPattern) -> Iterator[FileState]:
        key = pattern.key.rstrip("/")
        if hidden(key.rpartition("/")[2]):
            return
        found = False
        for item in self._list(pattern.bucket, f"{key}/"):
            found = True
            if not item["Key"].endswith("/") and not hidden_below(item["Key"][len(key) + 1 :]):
                yield _state(pattern.bucket, item, key)
        if not found and not pattern.key.endswith("/"):
            first = self._page(pattern.bucket, key, "", 1, flat=False)
            for item in first.get("Contents", []):
                if item["Key"] == key:
                    yield _state(pattern.bucket, item, "")

    def _list(
        self, bucket: str, prefix: str, *, folders: list[str] | None = None
    ) -> Iterator[ObjectTypeDef]:
        """List the objects of a prefix; with `folders` those of one level, folders added there."""
        token = ""
        while True:
            answer = self._page(bucket, prefix, token, _PAGE, flat=folders is not None)
            yield from answer.get("Contents", [])
            if folders is not None:
                folders += [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]
            token = answer.get("NextContinuationToken", "")
            if not token:
                return

    def _page(
        self, bucket: str, prefix: str, token: str, most: int, *, flat: bool
    ) -> ListObjectsV2OutputTypeDef:
        request: ListObjectsV2RequestTypeDef = {
            "Bucket": bucket,
            "Prefix": prefix,
            "MaxKeys": most,
        }
        if flat:
            request["Delimiter"] = "/"
        if token:
            request["ContinuationToken"] = token
        doing = f"listing `{S3_SCHEME}{bucket}/{prefix}`"
        with _naming("s3:ListBucket", bucket, prefix), aws_call(doing):
            return self._session.s3.list_objects_v2(**request)

    def _nothing(self, path: str, pattern: KeyPattern) -> NoFiles:
        folder = pattern.prefix.rstrip("/").rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        what = "no object matches" if pattern.magic else "there is no object or folder"
        try:
            answer = self._page(pattern.bucket, prefix, "", 50, flat=True)
        except AwsError:
            # A policy may be limited to what the path names: then nobody knows what is beside it.
            return NoFiles(f"{what} `{path}`")
        names = [entry["Key"] for entry in answer.get("Contents", [])]
        names += [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]
        shown = [f"`{name[len(prefix) :]}`" for name in sorted(names) if name != prefix]
        more = f" and {len(shown) - _NEIGHBOURS_SHOWN} more" * (len(shown) > _NEIGHBOURS_SHOWN)
        place = f"`{S3_SCHEME}{pattern.bucket}/{prefix}`"
        content = f"{place} holds {', '.join(shown[:_NEIGHBOURS_SHOWN])}{more}"
        return NoFiles(f"{what} `{path}`", hint=content if shown else f"{place} is empty")


@contextmanager
def _naming(action: str, resource: str, prefix: str = "") -> Iterator[None]:
    """Make a refusal say which IAM action it is about, and on which resource."""
    try:
        yield
    except AwsError as error:
        if error.denied and error.operation != "AssumeRole":
            where = f"`{action}` on `arn:aws:s3:::{resource}`"
            where += f" for the prefix `{prefix}`" if prefix else ""
            error.hint = f"allow {where} to the identity that reads the source"
        raise


def _state(bucket: str, item: ObjectTypeDef, root: str) -> FileState:
    return FileState(
        f"{S3_SCHEME}{bucket}/{item['Key']}",
        item["Size"],
        int(item["LastModified"].timestamp()) * 1_000_000_000,
        item["ETag"].strip('"'),
        root and f"{S3_SCHEME}{bucket}/{root}",
    )
