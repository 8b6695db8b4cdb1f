"""Our commit's answer is lost, or is an error: what does the client say, and what is true?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.integration.formats.iceberg.proof.client import Seen
from tests.integration.formats.iceberg.proof.places import Place
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Action, Forward, Response, answer, drop_answer, drop_request


@dataclass(frozen=True)
class Told:
    """What the client said, the class of its exception, and whether the commit is in."""

    seen: Seen
    exception: str
    landed: bool

    @property
    def true(self) -> bool:
        """Whether what was said with certainty is so."""
        if self.seen in (Seen.UNKNOWN, Seen.MOVED):
            return True
        return (self.seen is Seen.LANDED) == self.landed


def _acted(action: Action) -> Action:
    """Let the server act first."""

    def act(request: Request, forward: Forward) -> Response:
        forward(request)
        return action(request, forward)

    return act


def _break_off(request: Request, forward: Forward) -> Response:
    """Let the server act, and send a part of its answer."""
    return replace(forward(request), send_bytes=1)


def _page(request: Request, forward: Forward) -> Response:
    """Answer as a proxy does whose page has the status of a success."""
    return Response(200, (("Content-Type", "text/html"),), b"<html>log in</html>")


FAULTS: dict[str, Action] = {
    "answer lost": drop_answer,
    "request lost": drop_request,
    "500 after acting": _acted(answer(500, "InternalServiceException")),
    "500 instead": answer(500, "InternalServiceException"),
    "503 after acting": _acted(answer(503, "ServiceUnavailable")),
    "503 instead": answer(503, "ServiceUnavailable"),
    "answer breaks off": _break_off,
    "page after acting": _acted(_page),
    "page instead": _page,
}


def publish_through(place: Place, fault: str, *, times: int) -> Told:
    """Publish an append that has to be picked onto another head, so that its commit has manifest
    files of its own, which a client that is wrong about the outcome would delete."""
    table = place.table("lost", "base")
    place.ours.stage(table, "ours")
    place.theirs.append(table, "foreign")
    transaction = place.ours.open(table, "ours")
    with place.commits(FAULTS[fault], times=times) as sent:
        seen, exception = place.ours.attempt(transaction.commitTransaction)
    assert sent, "our commit never left"
    landed = place.theirs.jobs(table) == ["ours"]
    # Reads the manifests: they are there, whatever the client believed.
    assert place.theirs.files(table) == ["base", "foreign", *(["ours"] if landed else [])]
    return Told(seen, exception, landed)
