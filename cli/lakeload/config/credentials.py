"""Credentials for AWS, as a destination and a source have them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from lakeload.config.model import Finding, Model, refusals
from lakeload.config.scalars import RoleArn, Text
from lakeload.config.secret_setting import Secret
from lakeload_jobs.contract.secrets import SecretReference

MAX_TAGS, MAX_TAG_KEY, MAX_TAG_VALUE = 50, 128, 256
"""What STS accepts as session tags, in number and in characters."""

_KEYS = ("access_key_id", "secret_access_key", "session_token")


class Credentials(Model):
    """Credentials of the identity that writes. Default: the AWS default chain."""

    role_arn: RoleArn | None = None
    """The role to assume; the keys or the profile below, else the default chain, assume it."""
    external_id: Secret = None
    """The ExternalId that the role's trust policy requires. Secret; with `role_arn` only."""
    session_duration: Annotated[int, Field(ge=900, le=43_200)] = 3600
    """Seconds a role's credentials live; they are renewed in time. With `role_arn` only."""
    session_tags: dict[Text, str] | None = None
    """Tags of the role's session, at most 50. With `role_arn` only."""
    profile: Text | None = None
    """A profile of the AWS configuration files."""
    access_key_id: Secret = None
    """An access key's id. Secret; needs `secret_access_key`."""
    secret_access_key: Secret = None
    """The secret access key. Secret; needs `access_key_id`."""
    session_token: Secret = None
    """The token of temporary keys. Secret; needs both keys."""

    @property
    def references(self) -> dict[str, SecretReference]:
        """Return the secret settings that are given, by name."""
        given = ((name, getattr(self, name)) for name in ("external_id", *_KEYS))
        return {name: reference for name, reference in given if reference is not None}

    @model_validator(mode="after")
    def _fit_together(self) -> Credentials:
        if findings := [*self._role_findings(), *self._key_findings(), *self._tag_findings()]:
            raise refusals(findings)
        return self

    def _role_findings(self) -> list[Finding]:
        if self.role_arn is not None:
            return []
        return [
            Finding(f"`{name}` has no effect without `role_arn`", "add the role's ARN", (name,))
            for name in ("external_id", "session_duration", "session_tags")
            if name in self.model_fields_set
        ]

    def _key_findings(self) -> list[Finding]:
        given = [name for name in _KEYS if getattr(self, name) is not None]
        found = []
        if given and self.profile is not None:
            hint = "remove one of them"
            found.append(
                Finding("`profile` cannot be combined with `access_key_id`", hint, ("profile",))
            )
        for name in _KEYS[:2]:
            if given and name not in given:
                hint = f"add `{name}: {{env: LAKELOAD_{name.upper()}}}`"
                found.append(Finding(f"`{given[0]}` needs `{name}` too", hint, (given[0],)))
        return found

    def _tag_findings(self) -> list[Finding]:
        tags = self.session_tags or {}
        found = [
            Finding("a tag is too long", "STS takes keys of 128 and values of 256 characters", at)
            for at, value in ((("session_tags", key), value) for key, value in tags.items())
            if len(at[1]) > MAX_TAG_KEY or len(value) > MAX_TAG_VALUE
        ]
        if len(tags) > MAX_TAGS:
            found.append(Finding(f"STS takes {MAX_TAGS} tags at most", None, ("session_tags",)))
        return found
