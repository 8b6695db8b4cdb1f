"""Data files that are uploaded and not visible yet: they wait for a commit, or are aborted."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.aws import AwsError
from lakeload_jobs.storage.objects import Objects, Part

ATTEMPT_METADATA = "attempt"
"""Metadata name of the attempt: "ours" is decided by it alone, never by the job id."""


@dataclass(frozen=True)
class StagedFile:
    """One multipart upload: its parts are in S3, its object is not visible yet. Key in full."""

    key: str
    upload_id: str
    parts: tuple[Part, ...]
    rows: int
    bytes: int


def upload_metadata(job_id: str, attempt_id: str, seq: int) -> dict[str, str]:
    """Return the metadata every data object carries: what says whose it is."""
    return {"job": job_id, ATTEMPT_METADATA: attempt_id, "seq": str(seq)}


@dataclass(frozen=True)
class NotedUpload:
    """One upload that was created and may still be open."""

    key: str
    upload_id: str


class UploadRegistry:
    """The notes of one table. `folder` is created on the first note; keys are no secrets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, upload: NotedUpload) -> bool:
        """Note an upload. False when the attempt has ended meanwhile: abort it at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / f"{uuid.uuid4().hex}.json"
        note.write_text(json.dumps([upload.key, upload.upload_id]), encoding="utf-8")
        # Looked at after the note is there: either the closer reads the note or we see the mark.
        return not self._closed.exists()

    def close(self) -> list[NotedUpload]:
        """Let no more uploads in and return those noted. Calling it again returns them again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._closed.touch()
        if self._committing.exists():
            return []
        uploads = []
        for note in sorted(self.folder.glob("*.json")):
            if text := note.read_text(encoding="utf-8"):
                key, upload_id = json.loads(text)
                uploads.append(NotedUpload(key, upload_id))
        return uploads

    def hand_over(self) -> None:
        """Say that the commit is about to be sent: from now on `close` names no upload, because
        aborting one could void a committed job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._committing.touch()

    @property
    def _closed(self) -> Path:
        return self.folder / "closed"

    @property
    def _committing(self) -> Path:
        return self.folder / "committing"


_PASSES = 5
_PAUSE = 0.5


def abort_uploads(objects: Objects, registry: UploadRegistry, staged: Sequence[StagedFile]) -> None:
    """Abort every upload of this attempt, also those of tasks that are only now being killed.

    S3 may keep a part that arrives during an abort, so it is repeated until nothing is listed.
    What AWS refuses here must not hide why the load failed.
    """
    for _ in range(_PASSES):
        uploads = {(note.key, note.upload_id) for note in registry.close()}
        uploads |= {(file.key, file.upload_id) for file in staged}
        if not uploads:
            return
        with contextlib.suppress(AwsError):
            for key, upload_id in sorted(uploads):
                objects.abort_upload(key, upload_id)
            folders = {key.rpartition("/")[0] + "/" for key, _ in uploads}
            left = {u.upload_id for folder in folders for u in objects.list_uploads(folder)}
            if not left & {upload_id for _, upload_id in uploads}:
                return
        time.sleep(_PAUSE)
