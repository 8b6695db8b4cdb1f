"""lakeload's cache: the jars that Spark does not bring, and the class-data archive."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from lakeload.machine.appcds.archive import ArchiveState
from lakeload.machine.cache_state import cache_state
from lakeload.machine.doctor.model import Finding, Need, Patient, Status
from lakeload.machine.jars.pins import JARS, JarState
from lakeload_jobs.core.sizes import format_size


def jars(patient: Patient) -> Iterator[Finding]:
    """Compare the files of the cache with what is pinned, and the archives with this machine."""
    state = cache_state(patient.host.cache, patient.environment, patient.need.features)
    yield judge_jars(state.jars, patient)
    if state.unknown is None:
        # Without a Java or a Spark there is nothing an archive could be for.
        yield judge_archives(state.archives, patient.need)


def judge_jars(states: Sequence[JarState], patient: Patient) -> Finding:
    """Return the finding for the states of the jars that are needed."""
    place = f"`{patient.host.cache / JARS}`"
    if not states:
        return Finding("jars", Status.OK, "none are needed beside Spark's own")
    if broken := [state for state in states if state.state == "broken"]:
        names = ", ".join(f"`{state.jar.file_name}`" for state in broken[:3])
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        found = f"broken in {place}: {names}{more}"
        why = "their content is not what is pinned; the next load fetches them anew"
        return Finding("jars", Status.WARNING, found, why, _fetch(patient.need))
    if missing := [state.jar for state in states if state.state == "missing"]:
        size = format_size(sum(jar.size for jar in missing))
        found = f"{len(missing)} of {len(states)} are not in {place} yet ({size})"
        why = "the first load that needs them fetches them, and needs the network for it"
        # Without a document nobody knows yet whether they will be needed.
        status = Status.WARNING if patient.need.destination is not None else Status.OK
        return Finding("jars", status, found, why, _fetch(patient.need))
    sets = ", ".join(patient.need.features)
    found = f"all {len(states)} ({sets}) are in {place}, checksums right"
    return Finding("jars", Status.OK, found)


def judge_archives(states: Sequence[ArchiveState], need: Need) -> Finding:
    """Return the finding for the archives that loads of this kind could use. None is needed."""
    # Iceberg's jars are not among those an archive is made for.
    wanted = set(need.features) - {"iceberg"}
    near = [
        state
        for state in states
        if need.destination is None or set(state.archive.features) == wanted
    ]
    for state in near:
        if state.state == "usable":
            size = format_size(state.archive.size)
            return Finding(
                "class-data", Status.OK, f"an archive of {size} makes Spark start faster"
            )
    slower = "Spark starts some seconds slower"
    if near:
        found = f"the archive is {near[0].state}" + (f": {near[0].why}" if near[0].why else "")
        return Finding("class-data", Status.WARNING, found, slower, _fetch(need))
    found = "no archive was made for loads like this one" if need.destination else "no archive"
    return Finding("class-data", Status.OK, found, slower, _fetch(need))


def _fetch(need: Need) -> str:
    return shlex.join(["lakeload", "jars", "fetch", *filter(None, [need.file])])
