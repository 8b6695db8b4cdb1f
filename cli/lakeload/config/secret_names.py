"""Names of secret settings, and masking of values that look like secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lakeload_jobs.contract.secrets import SecretReference

SECRET_SETTINGS = frozenset(
    {
        *("external_id", "access_key_id", "secret_access_key", "session_token"),
        *("client_id", "client_secret", "credential", "token", "password", "headers"),
    }
)
"""Settings that are references only; `headers` holds one for each header."""

REFERENCE_KINDS = ("env", "file", "aws_secret", "aws_parameter")

VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHORTHAND = re.compile(rf"\$\{{({VARIABLE_NAME.pattern})\}}")
"""`${NAME}`, which in a secret setting is short for `{env: NAME}`."""

_SECRET_LOOKING = re.compile(
    r"secret|passw|pwd|token|credential$|(access|private|api|account)[._-]?key|sas[._-]|"
    r"external[._-]?id|client[._-]?id|^auth|authori[sz]ation",
    re.IGNORECASE,
)
_PLAIN_CREDENTIAL_KEYS = frozenset({"role_arn", "session_duration", "session_tags", "profile"})
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
_SECRET_PARAMETER = re.compile(
    r"((?:passw|pwd|secret|token)[A-Za-z0-9_.-]*\s*=\s*)[^&;,\s'\"]+", re.IGNORECASE
)
_ORACLE_LOGIN = re.compile(r"(?<=jdbc:oracle:)\w+:[^@\s'\"]+(?=@)")
_ACCESS_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")
MASK = "****"


def looks_secret(name: str) -> bool:
    """Tell whether a key's name, also one we do not know, announces a secret."""
    return name in SECRET_SETTINGS or _SECRET_LOOKING.search(name) is not None


def is_masked_key(name: str, parent: str | None) -> bool:
    """Tell whether the value of `name` is masked: under `credentials` all but known plain keys, and
    the URL of a webhook."""
    if parent == "notify" and name == "url":
        return True
    return looks_secret(name) or (parent == "credentials" and name not in _PLAIN_CREDENTIAL_KEYS)


def has_userinfo(url: str) -> bool:
    """Tell whether a URL carries a user name or password."""
    return _USERINFO.search(url) is not None


def masked(text: str) -> str:
    """Hide user information and secret parameters of URLs, and AWS access key ids, wherever they
    stand in `text`."""
    text = _SECRET_PARAMETER.sub(rf"\g<1>{MASK}", _ORACLE_LOGIN.sub(MASK, text))
    return _ACCESS_KEY_ID.sub(MASK, _USERINFO.sub(MASK, text))


def printable(text: str) -> str:
    """Return `text` with control characters as escapes: a file's name may hold any."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def shown(value: str, limit: int = 60) -> str:
    """Return a value from a document as it may stand in a message: masked, printable, short."""
    text = printable(masked(value[: 4 * limit]))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def absolute_reference(reference: SecretReference | None, folder: Path) -> SecretReference | None:
    """Return a reference whose file, if it names one, is found from anywhere."""
    if reference is None or reference.kind != "file":
        return reference
    return SecretReference("file", absolute_path(folder, reference.name))


def absolute_path(folder: Path, path: str) -> str:
    """Join without resolving links or `..`: after a link they mean what the file system says.

    `~` is the home of whoever runs this, as in a shell.
    """
    return str(folder.absolute() / os.path.expanduser(path))  # noqa: PTH111
