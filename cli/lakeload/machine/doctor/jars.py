"""The jars that Spark does not bring: whether the cache has them, as they are pinned."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload.machine.jars import JarState, look_at_all, pinned
from lakeload_jobs.rules.sizes import format_size


def jars(patient: Patient) -> Iterator[Finding]:
    """Compare the files of the cache with what is pinned."""
    folder = patient.host.cache / "jars"
    yield judge_jars(look_at_all(pinned(*patient.need.features), folder), patient)


def judge_jars(states: Sequence[JarState], patient: Patient) -> Finding:
    """Return the finding for the states of the jars that are needed."""
    place = f"`{patient.host.cache / 'jars'}`"
    command = shlex.join(["lakeload", "jars", "fetch", *patient.need.features])
    if not states:
        return Finding("jars", Status.OK, "none are needed beside Spark's own")
    broken = [state for state in states if state.state == "broken"]
    if broken:
        names = ", ".join(f"`{state.jar.file_name}`" for state in broken[:3])
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        why = "their content is not what is pinned; the next load fetches them anew"
        return Finding("jars", Status.WARNING, f"broken in {place}: {names}{more}", why, command)
    missing = [state.jar for state in states if state.state == "missing"]
    if missing:
        size = format_size(sum(jar.size for jar in missing))
        found = f"{len(missing)} of {len(states)} are not in {place} yet ({size})"
        why = "the first load that needs them fetches them, and needs the network for it"
        # Without a document nobody knows yet whether they will be needed.
        asked = patient.need.destination is not None
        return Finding("jars", Status.WARNING if asked else Status.OK, found, why, command)
    sets = ", ".join(patient.need.features)
    found = f"all {len(states)} ({sets}) are in {place}, checksums right"
    return Finding("jars", Status.OK, found)
