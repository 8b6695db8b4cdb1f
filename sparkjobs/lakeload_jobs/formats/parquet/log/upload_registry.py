"""Uploads that tasks have opened, written down where the driver can read them.

The tasks of a stage that is being cancelled are killed without a chance to clean up, and an open
upload does not show its metadata, so listing cannot tell whose it is. Where tasks and driver share
a machine, each task therefore notes every upload as it opens it, and whoever ends the attempt
before its commit aborts exactly these. A folder holds one attempt at one table.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NotedUpload:
    """One upload that was created and may still be open."""

    key: str
    upload_id: str


class UploadRegistry:
    """The notes of one table. `folder` is created on the first note; keys are no secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, upload: NotedUpload) -> bool:
        """Note an upload. False when the attempt has ended meanwhile: abort it at once."""
        self._folder.mkdir(parents=True, exist_ok=True)
        note = self._folder / f"{uuid.uuid4().hex}.json"
        note.write_text(json.dumps([upload.key, upload.upload_id]), encoding="utf-8")
        # Looked at after the note is there: either the closer reads the note or we see the mark.
        return not self._closed.exists()

    def close(self) -> list[NotedUpload]:
        """Let no more uploads in and return those noted. Calling it again returns them again."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._closed.touch()
        if self._committing.exists():
            return []
        uploads = []
        for note in sorted(self._folder.glob("*.json")):
            if text := note.read_text(encoding="utf-8"):
                key, upload_id = json.loads(text)
                uploads.append(NotedUpload(key, upload_id))
        return uploads

    def hand_over(self) -> None:
        """Say that the commit is about to be sent: from now on `close` names no upload, because
        aborting one could void a committed job (DESIGN section 5, step 3)."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._committing.touch()

    @property
    def _closed(self) -> Path:
        return self._folder / "closed"

    @property
    def _committing(self) -> Path:
        return self._folder / "committing"
