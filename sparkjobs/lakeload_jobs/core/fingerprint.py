"""The fingerprint that tells whether a job id is used again for the same load."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lakeload_jobs.contract.codec import to_json


def canonical_json(data: Any) -> str:
    """Return JSON that is equal for equal data: keys sorted, no spaces, ASCII only.

    Takes what `codec.to_json` takes; raises `ValueError` for NaN and infinities.
    """
    return json.dumps(to_json(data), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(data: Any) -> str:
    """Return the SHA-256 of `canonical_json(data)` as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()
