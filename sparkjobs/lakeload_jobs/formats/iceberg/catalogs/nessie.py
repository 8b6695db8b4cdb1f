"""Nessie's native interface, as far as plain HTTP asks it: the server and its branches.

https://projectnessie.org/develop/rest/ (API v2)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import requests

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError, advised
from lakeload_jobs.formats.iceberg.catalogs.http import (
    DEFAULT_PATIENCE,
    FixedToken,
    HttpTimeouts,
    Identity,
    document_of,
    error_from,
    not_a_catalog,
    send,
    shown,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import nessie_api_uri


@dataclass
class NessieApi:
    """One server's native interface. Every method raises `CatalogError` and, for a missing token,
    `InvalidInput`."""

    spec: CatalogSpec
    session: AwsSession
    patience: HttpTimeouts = DEFAULT_PATIENCE
    advises: bool = False
    """Errors say what to do, since no connection test explains them."""

    @cached_property
    def identity(self) -> Identity:
        """Who we are to it: the bearer of a token, or nobody."""
        return FixedToken(self.session.resolve(self.spec.token)) if self.spec.token else Identity()

    @property
    def uri(self) -> str:
        """Where the interface is."""
        return nessie_api_uri(self.spec.uri or "")

    def reach(self) -> str:
        """Make sure that Nessie answers; return the name of its default branch."""
        doing = f"reading `{shown(self.uri)}/config`"
        branch = self._ask("GET", "config", doing).get("defaultBranch")
        if not isinstance(branch, str):
            raise not_a_catalog(doing, 200)
        return branch

    def head(self, branch: str) -> str:
        """Return the hash of the branch's newest commit; 404 when there is no such branch."""
        doing = f"reading Nessie's branch `{branch}`"
        return self._hash(self._ask("GET", f"trees/{quote(branch, safe='')}", doing), doing)

    def create_branch(self, name: str, source: str, head: str) -> str:
        """Make a branch from where `source` is; return its hash."""
        doing = f"creating Nessie's branch `{name}`"
        body = {"type": "BRANCH", "name": source, "hash": head}
        answer = self._ask("POST", f"trees?name={quote(name, safe='')}&type=BRANCH", doing, body)
        return self._hash(answer, doing)

    def commit_namespace(self, branch: str, head: str, name: str) -> str:
        """Commit a namespace to a branch; return the branch's new hash."""
        return self.put(branch, head, (name,), namespace_content(name))

    def put(self, branch: str, head: str, key: tuple[str, ...], content: dict[str, Any]) -> str:
        """Commit a table or namespace to a branch that is still at `head`, or has not changed
        `key` since; return the branch's new hash."""
        operation = {"type": "PUT", "key": {"elements": list(key)}, "content": content}
        return self._commit(branch, head, operation)

    def delete(self, branch: str, head: str, key: tuple[str, ...]) -> str:
        """Commit that a branch holds nothing under a key, on the conditions of `put`; return the
        branch's new hash."""
        return self._commit(branch, head, {"type": "DELETE", "key": {"elements": list(key)}})

    def _commit(self, branch: str, head: str, operation: dict[str, Any]) -> str:
        doing = f"committing to Nessie's branch `{branch}`"
        body = {"commitMeta": {"message": "lakeload"}, "operations": [operation]}
        path = f"trees/{quote(f'{branch}@{head}', safe='@')}/history/commit"
        answer = self._ask("POST", path, doing, body)
        return self._hash(answer, doing, inside=("targetBranch", "reference"))

    def content(self, branch: str, key: tuple[str, ...]) -> tuple[dict[str, Any], str]:
        """Return what a branch holds under a key, and the branch's hash; 404 where it holds
        nothing."""
        doing = f"reading `{'.'.join(key)}` of Nessie's branch `{branch}`"
        # A dot within an element is written as the character for groups.
        path = ".".join(quote(one.replace(".", "\x1d"), safe="") for one in key)
        answer = self._ask("GET", f"trees/{quote(branch, safe='')}/contents/{path}", doing)
        content = answer.get("content")
        if not isinstance(content, dict):
            raise not_a_catalog(doing, 200)
        return content, self._hash(answer, doing, inside=("effectiveReference",))

    def delete_branch(self, name: str, head: str) -> None:
        """Delete a branch that is still at `head`."""
        path = f"trees/{quote(f'{name}@{head}', safe='@')}?type=BRANCH"
        self._ask("DELETE", path, f"deleting Nessie's branch `{name}`")

    def _ask(
        self, method: str, path: str, doing: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        uri = f"{self.uri}/{path}"
        response = send(method, uri, doing, self.identity, self.patience, json=body)
        if not response.ok:
            error = self._refusal(doing, response)
            raise advised(error) if self.advises else error
        return document_of(response, doing)

    def _refusal(self, doing: str, response: requests.Response) -> CatalogError:
        """Nessie names its errors in a field of their own: `errorCode`."""
        hidden = [self.identity.token] if isinstance(self.identity, FixedToken) else []
        try:
            code = str(response.json().get("errorCode") or "")
        except (ValueError, AttributeError):
            code = ""
        if not code and response.status_code == HTTPStatus.NOT_FOUND:
            # Nessie names a reason for everything that it does not find: this is another server,
            # such as a REST catalog, whose own "not found" is not a word about a branch.
            error = not_a_catalog(doing, HTTPStatus.NOT_FOUND)
            error.hint = f"check `uri`: Nessie does not respond at `{shown(self.uri)}`"
            return error
        if not code:
            return error_from(doing, response, hidden)
        return CatalogError(
            f"{doing}: rejected (`{code}`, HTTP {response.status_code})",
            code=code,
            status=response.status_code,
        )

    def _hash(
        self, answer: dict[str, Any], doing: str, inside: tuple[str, ...] = ("reference",)
    ) -> str:
        candidates = (answer.get(name) for name in inside)
        nothing: dict[str, Any] = {}
        reference = next((one for one in candidates if isinstance(one, dict)), nothing)
        found = reference.get("hash")
        if not isinstance(found, str):
            raise not_a_catalog(doing, 200)
        return found


def namespace_content(name: str, location: str | None = None) -> dict[str, Any]:
    """Return what Nessie holds of a namespace, as Iceberg's own client for it writes that."""
    properties = {"location": location} if location else {}
    return {"type": "NAMESPACE", "elements": [name], "properties": properties}
