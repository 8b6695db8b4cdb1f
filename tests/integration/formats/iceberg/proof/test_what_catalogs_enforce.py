"""Every question to every catalog, and the answers that the protocol rests on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.iceberg.rules.catalogs import loading_problem
from tests.integration.formats.iceberg.proof import races
from tests.integration.formats.iceberg.proof.client import Seen
from tests.integration.formats.iceberg.proof.lost_answers import FAULTS, Told, publish_through
from tests.integration.formats.iceberg.proof.places import Place

Question = Callable[[Place], Seen]

SPECS = {
    "GLUE": CatalogSpec(),
    "REST": CatalogSpec(type="REST"),
    "SEAWEEDFS": CatalogSpec(type="REST"),
    "NESSIE_NATIVE": CatalogSpec(type="NESSIE", api="NATIVE"),
}
pytestmark = pytest.mark.exhaustive
"""The responses change with the versions of the catalogs, and not with our code."""


def compares(name: str) -> Compares:
    """Return what a catalog compares a commit with."""
    return catalog_traits(SPECS[name]).compares


each_catalog = pytest.mark.parametrize("name", SPECS)

OVERTAKEN: tuple[Question, ...] = (
    races.two_publishers_opened,
    races.two_publishers_of_one_client,
    races.two_publishers,
    races.two_first_publishers,
    races.two_overwrites,
    races.foreign_append,
    races.foreign_append_under_overwrite,
    races.rollback,
    races.rollback_under_overwrite,
    races.branch_dropped,
    races.empty_append,
)
"""What the protocol needs of any catalog."""


@each_catalog
def test_publish_after_another_commit_is_rejected_as_a_whole(
    name: str, catalogs: dict[str, Place]
) -> None:
    answers = {question.__name__: question(catalogs[name]) for question in OVERTAKEN}
    assert answers == dict.fromkeys(answers, Seen.REFUSED)


@each_catalog
def test_publish_to_a_recreated_table_is_rejected(name: str, catalogs: dict[str, Place]) -> None:
    assert races.made_anew(catalogs[name]) in (Seen.REFUSED, Seen.UNKNOWN)


@each_catalog
def test_requirements_not_sent_are_enforced_by_some_catalogs_only(
    name: str, catalogs: dict[str, Place]
) -> None:
    place, whole = catalogs[name], compares(name) is Compares.TABLE
    assert races.foreign_property(place) is (Seen.REFUSED if whole else Seen.LANDED)
    # Iceberg's own server takes it; SeaweedFS refuses to remove what is not there.
    unasserted = races.branch_dropped_unasserted(place)
    assert unasserted is {"REST": Seen.LANDED, "SEAWEEDFS": Seen.UNKNOWN}.get(name, Seen.REFUSED)


@each_catalog
def test_catalogs_accept_commits_that_only_the_protocol_rejects(
    name: str, catalogs: dict[str, Place]
) -> None:
    place = catalogs[name]
    assert races.rollback_before_opening(place) is Seen.LANDED
    assert races.properties_only(place) is Seen.LANDED
    assert races.replaced(place) is Seen.LANDED


@each_catalog
def test_a_table_is_made_once(name: str, catalogs: dict[str, Place]) -> None:
    # SeaweedFS tells everybody of success, and nobody's table is replaced.
    told = Seen.LANDED if name == "SEAWEEDFS" else Seen.EXISTS
    assert races.two_creators(catalogs[name]) is told
    assert races.creator_in_flight(catalogs[name]) is told


@each_catalog
@pytest.mark.parametrize("fault", ["answer lost", "request lost", "503 after acting"])
def test_commit_without_a_response_reports_unknown_and_removes_no_file(
    name: str, fault: str, catalogs: dict[str, Place]
) -> None:
    assert fault in FAULTS
    for times in (1, 99):
        told = publish_through(catalogs[name], fault, times=times)
        assert told.true, told


def test_reported_outcome_is_compared_with_the_observed_one() -> None:
    assert not Told(Seen.REFUSED, "CommitFailedException", landed=True).true
    assert not Told(Seen.LANDED, "", landed=False).true
    assert Told(Seen.UNKNOWN, "RESTException", landed=True).true


def test_nessie_over_rest_without_branches_is_rejected(catalogs: dict[str, Place]) -> None:
    place = catalogs["NESSIE"]
    table = place.table("branches", "base")
    java = place.java.load(table)
    java.manageSnapshots().createBranch("staged").commit()
    assert place.ours.refs(table) == ["main"]
    java.newAppend().appendFile(place.java.file(java, "hidden")).toBranch("staged").commit()
    assert place.ours.files(table) == ["base", "hidden"]
    assert loading_problem(CatalogSpec(type="NESSIE", api="REST"))
    assert all(loading_problem(spec) is None for spec in SPECS.values())
