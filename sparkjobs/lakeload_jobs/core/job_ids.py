"""Ids of jobs and attempts."""

from __future__ import annotations

import re
import uuid

_JOB_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


def job_id_problem(text: str) -> str | None:
    """Say why `text` is not a job id, or return None."""
    if _JOB_ID.fullmatch(text):
        return None
    if not text:
        return "a job id is empty"
    if len(text) > 64:
        return f"a job id has at most 64 characters, not {len(text)}"
    return "a job id consists of ASCII letters, digits and `-`"


def new_job_id() -> str:
    """Return an id for a job whose caller gave none."""
    return str(uuid.uuid4())


def new_attempt_id() -> str:
    """Return the id of one process working on a job; never used twice, unlike the job's."""
    return str(uuid.uuid4())
