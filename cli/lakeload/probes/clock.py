"""The probe of this machine's clock; AWS refuses requests that are 15 minutes off (F79)."""

from __future__ import annotations

from lakeload.probes.causes import likely_causes
from lakeload.probes.model import BesideThePoint, Level, Probe, ProbeFailed
from lakeload_jobs.aws import AwsSession

WARN_SECONDS = 300.0


def clock_probe(session: AwsSession) -> Probe:
    """Return the probe. It sends nothing: every answer so far, refusals too, has told the time."""
    return Probe(
        name="clock",
        proves="this machine's clock agrees with the servers'",
        level=Level.USEFUL,
        action="",
        resource="",
        run=lambda: _compare(session.clock.ahead),
        explain=likely_causes,
    )


def _compare(ahead: float | None) -> str:
    if ahead is None:
        raise BesideThePoint("no server has told its time")
    if abs(ahead) < WARN_SECONDS:
        return ""
    which = "ahead of" if ahead > 0 else "behind"
    minutes, seconds = divmod(round(abs(ahead)), 60)
    raise ProbeFailed(
        f"this machine's clock is {minutes} min {seconds} s {which} the server's",
        code="ClockSkew",
        hint="set the clock, for example with `timedatectl set-ntp true`: AWS refuses requests "
        "that are 15 minutes off",
    )
