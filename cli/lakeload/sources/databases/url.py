"""URLs of databases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator

from lakeload.config.model import Called, refusal
from lakeload.config.scalars import Text
from lakeload.config.secret_names import looks_secret, shown
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.databases.engines.base import TLS_MODES, Engine, Facts
from lakeload_jobs.sources.databases.engines.registry import BY_SCHEME, BY_URL, ENGINES

_NAMED = re.compile(r"jdbc:([A-Za-z][A-Za-z0-9+._-]*):.+", re.DOTALL)
_NAME_AND_VALUE = re.compile(r"([A-Za-z0-9_.\-]+)\s*=")
_PASSWORD_IN_URL = re.compile(
    "|".join(
        filter(
            None, ("//[^/@:]*:[^@/]*@", *(one.facts.password_in_url for one in ENGINES.values()))
        )
    )
)
_IN_REFERENCE = "remove it from the URL, and write `password: {env: NAME}` below `source`"


@dataclass(frozen=True)
class DatabaseUrl:
    """The parts of a URL; `user` '' where it names none."""

    engine: Engine
    host: str
    port: int
    name: str
    user: str
    parameters: Mapping[str, str]


def _refuse_secrets(url: str) -> None:
    """Raise `PydanticCustomError` for a URL of JDBC that has a secret, whatever its driver is."""
    secret = next((name for name in _NAME_AND_VALUE.findall(url) if looks_secret(name)), None)
    if secret is not None:
        raise refusal(
            f"the parameter `{shown(secret)}` of the URL is a secret",
            _IN_REFERENCE,
            code="secret-literal",
        )
    if _PASSWORD_IN_URL.search(url):
        raise refusal(
            "the URL carries a password; secrets must be references",
            _IN_REFERENCE,
            code="secret-literal",
        )


def _example(url: str) -> str:
    """Return how a URL is written that begins as this one."""
    first = next(iter(ENGINES.values()))
    return f"write it as `{BY_SCHEME.get(url.partition(':')[0], first).facts.example}`"


def parse_url(url: str) -> DatabaseUrl:
    """Return the parts of a database's URL. Raises `PydanticCustomError`."""
    if url.startswith("jdbc:"):
        _refuse_secrets(url)
    named = _NAMED.fullmatch(url)
    if named is not None and named[1] not in BY_SCHEME:
        # The driver alone knows what is in it.
        return DatabaseUrl(BY_URL, "", 0, "", "", {})
    plain = url.removeprefix("jdbc:")
    try:
        parts = urlsplit(plain)
        _ = parts.port
    except ValueError:
        raise refusal("`url` is not the URL of a database", _example(plain)) from None
    if parts.password is not None:
        raise refusal(
            "the URL carries a password; secrets must be references",
            _IN_REFERENCE,
            code="secret-literal",
        )
    engine = BY_SCHEME.get(parts.scheme)
    if engine is None:
        known = ", ".join(f"`{scheme}://`" for scheme in BY_SCHEME)
        raise refusal(
            f"`{shown(parts.scheme)}` is not a database that lakeload reads",
            did_you_mean(parts.scheme, BY_SCHEME)
            or f"the URL begins with one of {known}, or with `jdbc:` for a driver of your own",
        )
    place = engine.place_of(parts)
    if place is None:
        raise refusal(f"`{shown(url)}` does not name one host and one database", _example(plain))
    user = unquote(parts.username or "")
    return DatabaseUrl(engine, *place, user, _parameters(parts.query, engine.facts))


def _parameters(query: str, facts: Facts) -> dict[str, str]:
    allowed, modes = facts.parameters, facts.tls_modes
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if looks_secret(name):
            raise refusal(
                f"the parameter `{shown(name)}` of the URL is a secret",
                _IN_REFERENCE,
                code="secret-literal",
            )
        if name == "user":
            raise refusal(
                "the parameter `user` belongs below `source`",
                "remove it from the URL, and write `user: NAME` below `source`",
            )
        if name not in allowed:
            raise refusal(
                f"the URL has the parameter `{shown(name)}`, which lakeload does not know",
                did_you_mean(name, allowed)
                or f"the parameters are {', '.join(f'`{one}`' for one in allowed)}",
            )
        if name == "sslmode" and value not in modes:
            whose = "libpq's" if modes == TLS_MODES else "those that its driver has"
            raise refusal(
                f"`sslmode={shown(value)}` is not one of {whose}",
                did_you_mean(value, modes) or f"write one of {', '.join(modes)}",
            )
        if name == "connect_timeout" and not re.fullmatch(r"\d{1,4}", value):
            raise refusal("`connect_timeout` is a number of seconds", "write `connect_timeout=15`")
        found[name] = value
    return found


def _checked_url(url: str) -> str:
    parse_url(url)
    return url


DatabaseAddress = Annotated[Text, Called("URL of a database"), AfterValidator(_checked_url)]
