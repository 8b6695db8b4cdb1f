"""Objects in S3: which a path names, and their bytes, for the identity that reads them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.bucket import bucket_region
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.names import neighbour_meant
from lakeload_jobs.sources.paths.file_state import (
    S3_SCHEME,
    FileState,
    NoFiles,
    hidden_below,
    is_s3,
)
from lakeload_jobs.sources.paths.key_patterns import KeyPattern
from lakeload_jobs.sources.paths.local_listing import NEIGHBOURS_SHOWN
from lakeload_jobs.sources.paths.source_bytes import Bytes, SeekableFile

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import (
        ListObjectsV2OutputTypeDef,
        ListObjectsV2RequestTypeDef,
        ObjectTypeDef,
    )


_PAGE = 1000
_GAP = 1 << 20
"""So many bytes cost less than a request of their own."""
_MOST_AT_ONCE = 64 << 20
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
        """Open an object from byte `start` on. Raises as `read_range` does, while it is read as
        well."""
        if start >= file.size:  # a range of nothing is an error
            yield io.BytesIO()
            return
        with _reading(file) as pattern:
            answer = self._session.s3.get_object(
                Bucket=pattern.bucket,
                Key=pattern.key,
                Range=f"bytes={start}-",
                IfMatch=f'"{file.etag}"',
            )
            with answer["Body"] as body:
                yield body

    def read_range(self, file: FileState, start: int, size: int) -> bytes:
        """Return bytes of an object, at least one.

        Raises `AwsError`, and `LoadFailed` for an object that is not what it was when it was
        listed.
        """
        with _reading(file) as pattern:
            answer = self._session.s3.get_object(
                Bucket=pattern.bucket,
                Key=pattern.key,
                Range=f"bytes={start}-{start + size - 1}",
                IfMatch=f'"{file.etag}"',
            )
            with answer["Body"] as body:
                return body.read()

    def region(self, bucket: str) -> str | None:
        """Return the region of a bucket, None when the store does not name it (aws.bucket)."""
        return bucket_region(self._session.s3, bucket)

    def _find(self, path: str, pattern: KeyPattern) -> Iterator[FileState]:
        found = False
        for file in self._named(pattern):
            found = True
            if any(name in _NO_NAMES for name in KeyPattern.parse(file.path).key.split("/")):
                raise LoadFailed(
                    f"`{file.path}` cannot be read: Spark changes `//`, `.` and `..` in keys",
                    hint="copy the object to another key, or leave it out of the path",
                )
            yield file
        if found:
            return
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
        # Of a pattern, which is first taken for a name, what a policy has to allow.
        with _naming("s3:ListBucket", bucket, KeyPattern(bucket, prefix).prefix), aws_call(doing):
            return self._session.s3.list_objects_v2(**request)

    def _nothing(self, path: str, pattern: KeyPattern) -> NoFiles:
        what = "no object matches" if pattern.magic else "there is no object or folder"
        return NoFiles(f"{what} `{path}`", hint=self._beside(pattern))

    def _beside(self, pattern: KeyPattern) -> str | None:
        """Say what is in the innermost folder of a pattern that is there, None where nobody may
        list it."""
        place = f"{S3_SCHEME}{pattern.bucket}/"
        folder = pattern.prefix.rstrip("/") if pattern.magic else pattern.key.rstrip("/")
        if not (pattern.magic and pattern.prefix.endswith("/")):
            folder = folder.rpartition("/")[0]
        # A policy may be limited to what begins as the pattern does: that is tried last.
        prefixes = [f"{folder}/"] if folder else []
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            prefixes.append(f"{folder}/")
        for prefix in (*prefixes, "", pattern.prefix):
            with contextlib.suppress(AwsError):
                answer = self._page(pattern.bucket, prefix, "", _PAGE, flat=True)
                names = [entry["Key"] for entry in answer.get("Contents", [])]
                names += [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]
                start = prefix.rpartition("/")[0]
                start = f"{start}/" if start else ""
                names = sorted(name[len(start) :] for name in names if name != start)
                shown = [f"`{name}`" for name in names]
                if not prefix and not shown:
                    return f"`{place}` is empty"
                if shown:
                    listed = ", ".join(shown[:NEIGHBOURS_SHOWN])
                    more = len(shown) - NEIGHBOURS_SHOWN
                    meant = neighbour_meant(pattern.key, start, names)
                    rest = f" and {more} more" * (more > 0)
                    return f"{meant}`{place}{start}` holds {listed}{rest}"
        return None


class ObjectFile(SeekableFile):
    """An object in S3 as a file; each read that is not of a range at hand is a request. Reads raise
    as `SourceObjects.read_range` does."""

    def __init__(self, objects: SourceObjects, file: FileState) -> None:
        super().__init__(file.size)
        self._objects = objects
        self._file = file
        self._held: list[tuple[int, bytes]] = []

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Hold ranges, each from a first byte to one behind its last, in place of those held so
        far. Ranges with little between them are one request."""
        self._held = []
        for start, end in _joined(ranges):
            data = self._objects.read_range(self._file, start, end - start)
            self._held.append((start, data))

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes and return how many they are."""
        size = min(len(buffer), self._file.size - self._at)
        if size <= 0:
            return 0
        held = next((found for found in self._held if _holds(found, self._at, size)), None)
        if held is None:
            data = self._objects.read_range(self._file, self._at, size)
        else:
            start, whole = held
            data = whole[self._at - start : self._at - start + size]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= _GAP and end - joined[-1][0] <= _MOST_AT_ONCE:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _holds(held: tuple[int, bytes], at: int, size: int) -> bool:
    start, data = held
    return start <= at and at + size <= start + len(data)


@contextmanager
def _reading(file: FileState) -> Iterator[KeyPattern]:
    pattern = KeyPattern.parse(file.path)
    try:
        with (
            _naming("s3:GetObject", f"{pattern.bucket}/{pattern.key}"),
            aws_call(f"reading `{file.path}`"),
        ):
            yield pattern
    except AwsError as error:
        if error.code == "PreconditionFailed":
            raise changed(file.path, "was written to") from error
        if error.code == "NoSuchKey":
            raise changed(file.path, "was removed") from error
        raise


@contextmanager
def _naming(action: str, resource: str, prefix: str = "") -> Iterator[None]:
    """Make a refusal say which IAM action it is about, and on which resource."""
    try:
        yield
    except AwsError as error:
        if error.denied and not error.explicit_deny and error.operation != "AssumeRole":
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


def changed(path: str, what: str) -> LoadFailed:
    """Return the failure of a load whose source is not what it was when it was listed."""
    return LoadFailed(
        f"the source changed while it was read: `{path}` {what}",
        hint="load only complete objects, and write new ones under new keys"
        if is_s3(path)
        else "load only complete files: write new ones under another name and rename them",
        retryable=True,
    )
