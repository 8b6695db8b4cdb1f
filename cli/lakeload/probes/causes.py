"""Why AWS says no: likely causes, the likeliest first (F76–F83).

Codes decide. Texts are read for two things only: STS and Glue answer a wrong clock and a wrong
secret with the same code, and a refusal's text may name what refused (decision 0065).
"""

from __future__ import annotations

from lakeload.probes.cause_table import CAUSES, CLOCK
from lakeload.probes.refusals import LAKE_FORMATION, Refusal, missing_grant, read_refusal
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput

_LAKE_FORMATION = (
    "Lake Formation governs this database or the catalog and has no grant for the role: IAM allows "
    "the call, and both have to",
    "the grant is for another role, or for a database of another name: it knows no prefixes",
)


def likely_causes(error: Exception, *, denied: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the likely causes of `error`; `denied` are those of an AccessDenied here."""
    if is_clock(error):
        return (CLOCK,)
    if is_lake_formation(error):
        return _LAKE_FORMATION
    if isinstance(error, AwsError) and error.denied:
        told = refusal(error)
        first = told.cause if told else ""
        if told and told.explicit:
            # That is certain then, and whether something allows it does not matter.
            return (first,)
        return (first, *denied) if first else denied
    if isinstance(error, InvalidInput):
        return ("the variable or file is set up for another user, shell or container",)
    return CAUSES.get(getattr(error, "code", ""), ())


def refusal(error: Exception) -> Refusal | None:
    """Return what a denial's text says of the policy that refused; None where it says nothing.

    Advice only: no verdict follows from it.
    """
    if not isinstance(error, AwsError) or not error.denied:
        return None
    return read_refusal(error.message)


def grant_hint(error: AwsError) -> str | None:
    """Return what to do about a refusal of Lake Formation; None for any other error."""
    if not is_lake_formation(error):
        return None
    grant = missing_grant(error.message)
    what = f"grant `{grant}`" if grant else "grant what is missing"
    return (
        f"{what} to the role in Lake Formation, as a data lake administrator: "
        "`lakeload policy FILE --for lake-formation` writes the commands"
    )


def is_lake_formation(error: Exception) -> bool:
    """True when Lake Formation refused and not IAM: Glue gives both the same code (B11)."""
    return isinstance(error, AwsError) and error.denied and LAKE_FORMATION in error.message


def is_clock(error: Exception) -> bool:
    """True when AWS says that the request's time is wrong."""
    if not isinstance(error, AwsError):
        return False
    if error.code == "RequestTimeTooSkewed":
        return True
    told = error.message
    return error.code in ("SignatureDoesNotMatch", "InvalidSignatureException") and (
        "Signature expired" in told or "Signature not yet current" in told
    )
