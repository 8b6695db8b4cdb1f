"""The `notify:` block of pipeline.yml: a webhook that gets a message when loads fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from lakeload.config.document import quoted
from lakeload.config.model import Called, Finding, Model, refusal, refusals
from lakeload.config.secret_names import shown
from lakeload.config.secret_setting import Secret
from lakeload.documents.durations import Duration

NotifyForm = Literal["JSON", "SLACK", "TEAMS"]
NotifyEvent = Literal["FAILED", "PARTIAL", "RECOVERED", "SCHEMA_CHANGED", "REJECTED", "STALE"]

_LOCAL = ("env", "file")
_EVENTS: tuple[str, ...] = get_args(NotifyEvent)


def _events(given: Any) -> Any:
    if not isinstance(given, tuple) or not given:
        raise refusal("this is not a list of events", "write `on: [FAILED, PARTIAL, RECOVERED]`")
    there = f"there are {quoted(_EVENTS)}"
    found = [
        Finding(f"`{shown(str(name))}` is not an event", there, (i,))
        for i, name in enumerate(given)
        if name not in _EVENTS
    ]
    if found:
        raise refusals(found)
    return given


Events = Annotated[
    tuple[NotifyEvent, ...],
    Called("list of events"),
    BeforeValidator(_events),
    WithJsonSchema({"type": "array", "items": {"enum": list(_EVENTS)}, "minItems": 1}),
]


class Notify(Model):
    """Messages to a webhook: one when the pipeline breaks, and one when it works again."""

    url: Secret = None
    """The URL of the webhook. Secret."""
    form: NotifyForm = "JSON"
    """What the webhook takes: a document (`JSON`), or a message of `SLACK` or `TEAMS`."""
    on: Events = ("FAILED", "PARTIAL", "RECOVERED")
    """What messages are about."""
    quiet: Duration = timedelta(hours=1)
    """After a message there is none about the same for this long."""

    @model_validator(mode="after")
    def _url_is_local(self) -> Notify:
        at: tuple[Any, ...] = ("url",)
        if self.url is None:
            found = Finding("`url` is missing", "add `url: {env: NAME}`", at, "missing-key")
            raise refusals([found])
        if self.url.kind not in _LOCAL:
            message = f"`{self.url}` is not possible here: messages are sent without AWS"
            raise refusals([Finding(message, "write `{env: NAME}` or `{file: PATH}`", at)])
        return self
