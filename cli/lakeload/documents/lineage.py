"""The `lineage:` block of pipeline.yml: where OpenLineage events are sent."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, model_validator

from lakeload.config.model import Called, Finding, Model, refusal, refusals
from lakeload.config.scalars import Text, check_url
from lakeload.config.secret_names import shown
from lakeload.config.secret_setting import Secret, SecretHeaders
from lakeload_jobs.contract.secrets import SecretReference

_HINT = "write it with scheme and host: `https://marquez.example.com`"
_LOCAL = ("env", "file")


def _receiver_url(value: str) -> str:
    what, secrets = "the URL of a receiver", "use `token` or `headers`"
    parts = check_url(value, secrets, _HINT, what)
    if parts.query or parts.fragment or re.search(r"\s", value):
        raise refusal(f"`{shown(value)}` is not {what}", _HINT)
    return value.rstrip("/")


def _endpoint(value: str) -> str:
    if re.search(r"[\s?#]|://", value):
        raise refusal(
            f"`{shown(value)}` is not the path of a receiver", "write it as `api/v1/lineage`"
        )
    return value.lstrip("/")


ReceiverUrl = Annotated[Text, AfterValidator(_receiver_url), Called("URL")]
EndpointPath = Annotated[Text, AfterValidator(_endpoint), Called("path of a URL")]
LineagePath = Annotated[Text, Called("path")]


class Lineage(Model):
    """OpenLineage events of each load, sent by the client that `lakeload[lineage]` installs."""

    url: ReceiverUrl | None = None
    """The receiver. Default: as the client is configured, such as by `OPENLINEAGE_URL`."""
    endpoint: EndpointPath = "api/v1/lineage"
    """The path of the receiver below `url`."""
    token: Secret = None
    """A bearer token for `url`. Secret."""
    headers: Annotated[dict[str, SecretReference] | None, SecretHeaders()] = None
    """Further headers of each request to `url`; their values are secret references."""
    file: LineagePath | None = None
    """A file that gets each event as a line of JSON, in place of `url`; relative to this file."""
    namespace: Text | None = None
    """The namespace of the jobs. Default: `OPENLINEAGE_NAMESPACE`, else `lakeload`."""

    @property
    def references(self) -> dict[str, SecretReference]:
        """Return the secret settings that are given, by name; headers as `headers.NAME`."""
        headers = {f"headers.{name}": value for name, value in (self.headers or {}).items()}
        return ({"token": self.token} if self.token else {}) | headers

    @model_validator(mode="after")
    def _one_receiver(self) -> Lineage:
        found = []
        if self.url is not None and self.file is not None:
            message = "events go to `url` or into `file`"
            found.append(Finding(message, "remove one of them", ("file",), "contradiction"))
        for name, reference in self.references.items():
            at = tuple[Any, ...](name.split(".", 1))
            if self.url is None:
                message = f"`{at[0]}` is sent to `url`, which is missing"
                found.append(Finding(message, "add `url`, or remove it", at[:1], "missing-key"))
                break
            if reference.kind not in _LOCAL:
                message = f"`{reference}` is not possible here: events are sent without AWS"
                found.append(Finding(message, "write `{env: NAME}` or `{file: PATH}`", at))
        if found:
            raise refusals(found)
        return self
