"""What a catalog refuses Spark, by the class of Iceberg's exception (never by its text)."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import advice
from lakeload_jobs.formats.iceberg.load.java import caused_by, sentence

_TEST = "`lakeload test-connection` names each privilege and what may be wrong"

REFUSALS = (
    "NotAuthorizedException",
    "ForbiddenException",
    "AccessDeniedException",
    "StsException",
    "BadRequestException",
)
"""Clear answers: what was asked for did not happen."""


def opening_refused(
    error: BaseException, destination: DestinationSpec, hidden: Sequence[Secret]
) -> LakeloadError:
    """Return the failure to open the catalog, without any of the secrets."""
    kind = destination.iceberg.catalog.type
    said = _without(sentence(error), hidden)
    return Refused(f"Spark cannot open the {kind} catalog: {said}", hint=_hint(said))


def refused(error: BaseException, doing: str) -> LakeloadError | None:
    """Return the failure of a call the catalog has clearly refused; None for any other."""
    if not caused_by(error, *REFUSALS):
        return None
    said = sentence(error)
    return LoadFailed(f"{doing}: the catalog refuses it: {said}", hint=_hint(said))


def _hint(said: str) -> str:
    known = advice(said)
    return f"{known}; {_TEST}" if known else _TEST


def _without(text: str, hidden: Sequence[Secret]) -> str:
    for secret in hidden:
        for part in (secret.reveal(), *secret.reveal().split(":")):
            if len(part) >= 4:
                text = text.replace(part, "****")
    return text
