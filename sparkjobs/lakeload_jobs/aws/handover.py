"""The keys of assumed roles, for the processes that a command starts on its own machine.

The driver and its Python workers begin with them; otherwise each would call AssumeRole first. They
travel in the environment, which the system shows to the same user alone, as it does with
AWS_SECRET_ACCESS_KEY: a variable for each identity. Who begins with them renews them by itself.
"""

from __future__ import annotations

import hashlib
import json
import os

from lakeload_jobs.aws.credentials import Keys
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import CredentialsSpec

_PREFIX = "LAKELOAD_ROLE_KEYS_"


def variables(credentials: CredentialsSpec, keys: Keys) -> dict[str, str]:
    """Return the environment variable that hands over the keys of the role of `credentials`; none
    for keys that never expire, which are no role's."""
    if keys.session_token is None or keys.expires is None:
        return {}
    content = {
        "access_key": keys.access_key_id,
        "secret_key": keys.secret_access_key.reveal(),
        "token": keys.session_token.reveal(),
        "expiry_time": keys.expires.isoformat(),
    }
    return {variable(credentials): json.dumps(content)}


def handed_over(credentials: CredentialsSpec) -> dict[str, str] | None:
    """Return keys of the role of `credentials` that this process was started with, in botocore's
    form; None where there are none."""
    text = os.environ.get(variable(credentials))
    if text is None:
        return None
    content: dict[str, str] = json.loads(text)
    return content


def variable(credentials: CredentialsSpec) -> str:
    """Return the name of the variable for an identity. References are in its digest, no secrets."""
    text = json.dumps(to_json(credentials), sort_keys=True)
    return _PREFIX + hashlib.sha256(text.encode()).hexdigest()
