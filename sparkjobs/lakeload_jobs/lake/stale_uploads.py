"""Uploads that no record names and that are old: fenced off, then aborted (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class StaleUpload:
    """An upload whose attempt died before its commit. A LIST does not tell the attempt."""

    key: str
    upload_id: str
    initiated: datetime
