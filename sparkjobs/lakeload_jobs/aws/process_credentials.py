"""Credentials for programs that speak AWS's `credential_process`: Spark's S3 reader is one.

They are those of `AwsSession`, so the role, its ExternalId, and every kind of secret reference
mean the same to Spark as to lakeload itself. The answer goes to a pipe and nowhere else.
https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from lakeload_jobs.aws.session import AwsSession
from lakeload_jobs.contract.codec import from_json
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec


def main(arguments: list[str]) -> int:
    """Print credentials for the identity file and label given; on failure say why on stderr.

    The identity file is a `DestinationSpec` in JSON: references, no secrets.
    """
    identity, label = arguments
    try:
        spec = from_json(DestinationSpec, json.loads(Path(identity).read_text(encoding="utf-8")))
        answer = process_answer(AwsSession(spec, label=label))
    except LakeloadError as error:
        sys.stderr.write(f"{error.message}\n")
        return int(error.exit_code)
    sys.stdout.write(json.dumps(answer))
    return 0


def process_answer(session: AwsSession) -> dict[str, str | int]:
    """Return the document a `credential_process` prints. Raises `AwsError`, `InvalidInput`."""
    keys = session.keys()
    answer: dict[str, str | int] = {
        "Version": 1,
        "AccessKeyId": keys.access_key_id,
        "SecretAccessKey": keys.secret_access_key.reveal(),
    }
    if keys.session_token:
        answer["SessionToken"] = keys.session_token.reveal()
    if keys.expires:
        answer["Expiration"] = _instant(keys.expires)
    return answer


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
