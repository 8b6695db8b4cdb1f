"""The questions to every catalog by lakeload's own requests, and the answers that loads rest on."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.traits import Compares
from tests.integration.formats.iceberg.proof import races
from tests.integration.formats.iceberg.proof.client import Seen
from tests.integration.formats.iceberg.proof.crowd import load_in_crowd
from tests.integration.formats.iceberg.proof.lost_answers import FAULTS, publish_through
from tests.integration.formats.iceberg.proof.own_client import OwnClient
from tests.integration.formats.iceberg.proof.places import Place, Server, own_place
from tests.integration.formats.iceberg.proof.test_what_catalogs_enforce import (
    SPECS,
    Question,
    compares,
)

each_catalog = pytest.mark.parametrize("name", SPECS)
each_version = pytest.mark.parametrize("version", [2, 3])
once = pytest.mark.exhaustive
"""The responses change with the versions of the catalogs: what is not marked is for our code."""

OVERTAKEN: tuple[Question, ...] = (
    races.two_publishers_opened,
    races.two_publishers_of_one_client,
    races.two_publishers,
    races.two_first_publishers,
    races.two_overwrites,
    races.foreign_append,
    races.rollback,
    races.rollback_under_overwrite,
    races.branch_dropped,
    races.empty_append,
)
"""What the protocol needs of any catalog. What an overwrite may be published on is not for the
catalog to say, and is decided before."""


def not_in(name: str) -> Seen:
    """Return what is said of a commit that came second: Glue's client may have sent it twice."""
    return Seen.MOVED if name == "GLUE" else Seen.REFUSED


def ask(place: Place, questions: tuple[Question, ...] = OVERTAKEN) -> None:
    """Ask what must not be in."""
    answers = {question.__name__: question(place) for question in questions}
    assert answers == dict.fromkeys(answers, not_in(place.name))


@pytest.mark.parametrize("version", [pytest.param(2, marks=once), 3])
@pytest.mark.parametrize(
    "name", [one if one in ("GLUE", "REST") else pytest.param(one, marks=once) for one in SPECS]
)
def test_publish_after_another_commit_is_rejected_as_a_whole(
    name: str, version: int, proxies: dict[str, Server]
) -> None:
    ask(own_place(name, proxies[name], version))


@once
@each_version
@each_catalog
def test_publish_after_a_commit_of_iceberg_s_own_client_is_rejected_as_a_whole(
    name: str, version: int, proxies: dict[str, Server], catalogs: dict[str, Place]
) -> None:
    theirs = catalogs[name].java
    place = own_place(name, proxies[name], version, theirs)
    # Without what they stage: the publish of each is by its own kind of transaction.
    ask(place)
    assert races.made_anew(place) is not_in(name)


@once
@each_version
@each_catalog
def test_publishes_on_an_empty_table_and_after_another_count_rows(
    name: str, version: int, proxies: dict[str, Server]
) -> None:
    place = own_place(name, proxies[name], version)
    table = place.table("counted")
    for number, job in enumerate(("first", "second", "third"), start=1):
        place.ours.stage(table, job)
        assert place.ours.publish(table, job) == (Seen.LANDED, "")
        metadata = _own(place).load(table).metadata
        head = next(
            one
            for one in metadata["snapshots"]
            if one["snapshot-id"] == metadata["current-snapshot-id"]
        )
        assert head["summary"]["total-records"] == str(number)
        assert metadata.get("next-row-id") == (number if version == 3 else None)
    assert (place.theirs.files(table), place.theirs.refs(table)) == (
        ["first", "second", "third"],
        ["main"],
    )


@once
@each_catalog
def test_what_the_catalog_does_not_compare_is_kept(name: str, proxies: dict[str, Server]) -> None:
    place = own_place(name, proxies[name], 2)
    whole = compares(name) is Compares.TABLE
    assert races.foreign_property(place) is (not_in(name) if whole else Seen.LANDED)


@once
@each_catalog
def test_a_table_is_made_once(name: str, proxies: dict[str, Server]) -> None:
    place = own_place(name, proxies[name], 2)
    # SeaweedFS tells everybody of success, and nobody's table is replaced.
    told = Seen.LANDED if name == "SEAWEEDFS" else Seen.EXISTS
    assert races.two_creators(place) is told
    assert races.creator_in_flight(place) is told


@each_catalog
@pytest.mark.parametrize(
    "fault", [one if one == "answer lost" else pytest.param(one, marks=once) for one in FAULTS]
)
def test_a_commit_whose_response_is_lost_is_in_once_in_the_end(
    name: str, fault: str, proxies: dict[str, Server]
) -> None:
    place = own_place(name, proxies[name], 3)
    for times in (1, 99):
        told = publish_through(place, fault, times=times)
        assert told.true, told
        # Nothing but success or doubt: a load that is told of a failure would end.
        assert told.seen in (Seen.LANDED, Seen.MOVED, Seen.UNKNOWN), told
        again = name == "GLUE" and times == 1 and fault != "page instead"
        assert told.landed == (fault in TAKEN or again), told
        if not told.landed:
            table = place.last
            assert place.ours.publish(table, "ours") == (Seen.LANDED, "")
            assert place.theirs.files(table) == ["base", "foreign", "ours"]
            assert place.theirs.jobs(table) == ["ours"]


TAKEN = (
    *("answer lost", "answer breaks off", "page after acting"),
    *("500 after acting", "503 after acting"),
)
"""Faults of a commit that the server has taken. After other faults the client of Glue sends it
again, but for a page with the status of a success."""


def _own(place: Place) -> OwnClient:
    assert isinstance(place.ours, OwnClient)
    return place.ours


@once
@pytest.mark.timeout(300)
@each_catalog
def test_each_job_of_a_crowd_is_in_once_although_commits_are_lost(
    name: str, proxies: dict[str, Server]
) -> None:
    crowd, trouble = load_in_crowd(own_place(name, proxies[name], 3), writers=6, jobs=8)
    assert crowd.outcomes == {"IN": 48}, (crowd.outcomes, trouble.seen)
    assert trouble.seen["requests"] > 5, trouble.seen
    assert trouble.seen["answers"] > 5, trouble.seen
    assert set(crowd.published.values()) == {1}
    assert (crowd.jobs, len(crowd.published), crowd.rows) == (48, 48, 48)
    assert (len(crowd.files), len(set(crowd.files))) == (48, 48)
    assert crowd.branches == ["main"]
    # Row ids have neither gap nor overlap.
    ends = [first + rows for first, rows in crowd.ids]
    assert [first for first, _ in crowd.ids] == [0, *ends[:-1]]
    assert ends[-1] == crowd.next_id == 48
