"""Secrets that are in play in a test, and where they may be looked for."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import quote

import boto3

from tests.servers.ministack import Lake

SETTINGS = ("external_id", "access_key_id", "secret_access_key", "session_token")
_ISSUED = re.compile(rb"<(AccessKeyId|SecretAccessKey|SessionToken)>([^<]+)<")


@dataclass
class Canaries:
    """Every secret that is in play, and where to look for it."""

    values: dict[str, str] = field(default_factory=dict)

    def found_in(self, content: bytes) -> list[str]:
        """Return the names of the secrets that `content` holds, as they are or URL-encoded."""
        forms = {name: {value, quote(value, safe="")} for name, value in self.values.items()}
        return [
            name
            for name, variants in forms.items()
            if any(variant.encode() in content for variant in variants)
        ]

    def remember_issued(self, body: bytes) -> bytes:
        """Take the credentials of an AssumeRole answer for secrets too."""
        for name, value in _ISSUED.findall(body):
            self.values[f"issued {name.decode()} {len(self.values)}"] = value.decode()
        return body

    @property
    def environment(self) -> dict[str, str]:
        """The variables the document's references name."""
        return {f"CANARY_{name.upper()}": self.values[name] for name in SETTINGS}


def password_canary() -> Canaries:
    """Return a password with characters that need escapes.

    Each call returns another one: tests look at the argv of all processes of the machine, and a
    test that runs at the same time may give its own password to a tool in argv.
    """
    return Canaries({"password": f"CANARY {secrets.token_hex(4)} pass/w'or\\d%41"})


def canaries_of(lake: Lake) -> Canaries:
    """Return the lake's ExternalId, and temporary keys of its base identity."""
    sts = boto3.client(
        "sts",
        endpoint_url=lake.server.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id=lake.seeded.base_key.access_key_id,
        aws_secret_access_key=lake.seeded.base_key.secret_access_key,
    )
    temporary = sts.get_session_token()["Credentials"]
    values = (
        lake.seeded.external_id,
        temporary["AccessKeyId"],
        temporary["SecretAccessKey"],
        temporary["SessionToken"],
    )
    return Canaries(dict(zip(SETTINGS, values, strict=True)))
