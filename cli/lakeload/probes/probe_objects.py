"""What the S3 probes do: the requests a load sends, on objects of the test's own."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from lakeload.probes.model import ProbeFailed
from lakeload.probes.runner import Deadline, succeeds, within
from lakeload_jobs.aws import AwsSession, aws_call
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.storage.objects import Completion, Objects, OpenUpload, Part

BODY = b"written by lakeload test-connection; safe to delete\n"
_METADATA = {"lakeload": "probe"}


@dataclass
class ProbeObjects:
    """The write probes of one test. Their keys are its own, so tests may run side by side."""

    destination: DestinationSpec
    session: AwsSession
    objects: Objects
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _written: set[str] = field(default_factory=set)
    _uploads: dict[str, str] = field(default_factory=dict)
    """Open uploads: id → key."""
    _unanswered: bool = False
    """An upload may have begun whose id never arrived."""

    def key(self, name: str) -> str:
        """Return the key of one of this test's objects."""
        return f"{probe_path(self.destination.prefix)}{self._mark}-{name}"

    def delete_nothing(self) -> str:
        """Probe objects may be deleted: asked before one is written, so that none stays behind."""
        self._delete(self.key("absent"))
        return ""

    def put(self) -> str:
        """An object can be created."""
        self._written.add(self.key("object"))
        key = self.key("object")
        if not self.objects.put_if_absent(key, BODY):
            raise ProbeFailed(
                f"writing `{self.objects.url(key)}` was answered as if it were there",
                code="PreconditionFailed",
                hint="the store treats If-None-Match wrongly: ask its vendor",
            )
        return ""

    def put_again(self) -> str:
        """A second writer of the same key is refused."""
        if self.objects.put_if_absent(self.key("object"), BODY):
            raise _no_conditions("PutObject", self.objects.url(self.key("object")))
        return "the second write got 412"

    def get(self) -> str:
        """What was written can be read back."""
        if self.objects.get(self.key("object")) != BODY:
            raise ProbeFailed(
                f"`{self.objects.url(self.key('object'))}` does not read as it was written",
                code="ContentDiffers",
                hint="something between here and the store changes bodies: look for a proxy",
            )
        return ""

    def find_encryption(self) -> str:
        """What was written is encrypted as the document says; some stores ignore the headers."""
        wanted = self.destination.encryption
        key = self.key("object")
        with aws_call(f"reading the metadata of `{self.objects.url(key)}`"):
            answer = self.session.s3.head_object(Bucket=self.destination.bucket, Key=key)
        algorithm = {"SSE_S3": "AES256", "SSE_KMS": "aws:kms"}[wanted.type]
        found, with_key = answer.get("ServerSideEncryption"), answer.get("SSEKMSKeyId", "")
        name = (wanted.kms_key_id or "").rpartition("/")[2]
        # S3 answers with the key's own ARN, whatever alias the request names.
        other_key = "alias/" not in (wanted.kms_key_id or "") and not with_key.endswith(name)
        if found != algorithm or other_key:
            shown = f"`{found}`" if found else "nothing"
            raise ProbeFailed(
                f"`{self.objects.url(key)}` was to be encrypted with `{algorithm}` and is with "
                + (f"the key `{with_key}`" if found == algorithm else shown),
                code="EncryptionIgnored",
                hint="use a store that has this encryption, or leave `encryption` out and let the "
                "bucket's own default decide",
            )
        return f"with {with_key}" if with_key else ""

    def abort_nothing(self) -> str:
        """Uploads may be aborted: asked before one is begun, so that none stays behind."""
        self.objects.abort_upload(self.key("absent"), "AbsentUpload")
        return ""

    def upload(self) -> str:
        """A file can be uploaded without becoming visible, and given up."""
        upload_id, _ = self._upload("aborted")
        self.objects.abort_upload(self._uploads.pop(upload_id), upload_id)
        return ""

    def complete(self) -> str:
        """A file appears at once, and a second one cannot replace it."""
        key = self.key("multipart")
        self._written.add(key)
        if self._complete("multipart") is not Completion.COMPLETED:
            raise ProbeFailed(
                f"the upload of `{self.objects.url(key)}` could not be completed",
                code="NoSuchUpload",
                hint="the store lost an upload or treats If-None-Match wrongly: ask its vendor",
            )
        if self.destination.single_writer:
            return ""
        if self._complete("multipart") is Completion.COMPLETED:
            raise _no_conditions("CompleteMultipartUpload", self.objects.url(key))
        return "the second completion got 412"

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove what the probes wrote; return the URLs of what could not be removed."""
        left = []
        for upload_id, key in self._open_uploads(deadline):
            if not succeeds(partial(self.objects.abort_upload, key, upload_id), deadline):
                left.append(f"{self.objects.url(key)} (multipart upload)")
        for key in sorted(self._written):
            if not succeeds(partial(self._delete, key), deadline):
                left.append(self.objects.url(key))
        return tuple(left)

    def _open_uploads(self, deadline: Deadline) -> list[tuple[str, str]]:
        """Return id and key of open uploads, with those whose beginning was never answered."""
        known = dict(self._uploads)
        if self._unanswered:
            with suppress(LakeloadError):
                for upload in within(self._listed, deadline):
                    known[upload.upload_id] = upload.key
        return list(known.items())

    def _listed(self) -> list[OpenUpload]:
        return list(self.objects.list_uploads(self.key("")))

    def _delete(self, key: str) -> None:
        with aws_call(f"deleting `{self.objects.url(key)}`"):
            self.session.s3.delete_object(Bucket=self.destination.bucket, Key=key)

    def _upload(self, name: str) -> tuple[str, Part]:
        key = self.key(name)
        self._unanswered = True
        upload_id = self.objects.create_upload(key, _METADATA)
        self._uploads[upload_id] = key
        self._unanswered = False
        return upload_id, self.objects.upload_part(key, upload_id, 1, BODY)

    def _complete(self, name: str) -> Completion:
        upload_id, part = self._upload(name)
        outcome = self.objects.complete_upload(self.key(name), upload_id, (part,))
        if outcome is Completion.COMPLETED:
            del self._uploads[upload_id]
        return outcome


def _no_conditions(operation: str, url: str) -> ProbeFailed:
    return ProbeFailed(
        f"a second {operation} replaced `{url}`: this store ignores If-None-Match",
        code="ConditionalWritesUnsupported",
        hint="update the store; or set `single_writer: true`, and then never run two loads at once",
    )
