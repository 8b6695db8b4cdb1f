"""Somebody else commits: before our commit is sent, or while it is on its way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.integration.formats.iceberg.proof.client import JOBS, Client, Seen
from tests.integration.formats.iceberg.proof.places import Place, is_commit, is_create
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import before


def _in_flight(
    place: Place, table: str, branch: str, other: Callable[[], object], **how: object
) -> Seen:
    """Publish, and let the other act when our commit is on its way to the server."""
    transaction = place.ours.open(table, branch, **how)  # type: ignore[arg-type]
    return _while_sent(place, transaction.commitTransaction, other)


def _while_sent(
    place: Place,
    commit: Callable[[], object],
    other: Callable[[], object],
    which: Callable[[Request], bool] = is_commit,
) -> Seen:
    done = []
    with place.commits(before(lambda _: done.append(other())), which=which):
        seen, _ = place.ours.attempt(commit)
    assert done, "our commit never left, or the other one failed"
    return seen


def two_publishers_opened(place: Place) -> Seen:
    """Two attempts of one job open their transactions; then both commit."""
    table = place.table("opened", "base")
    for client, branch in ((place.theirs, "first"), (place.ours, "second")):
        client.stage(table, branch)
    one, two = place.theirs.open(table, "first"), place.ours.open(table, "second")
    one.commitTransaction()
    seen, _ = place.ours.attempt(two.commitTransaction)
    _only(place, table, ["base", "first"], ["first"], kept="second")
    return seen


def two_publishers_of_one_client(place: Place) -> Seen:
    """The same with one catalog object for both, as two threads of one driver have it."""
    table = place.table("shared", "base")
    for branch in ("first", "second"):
        place.ours.stage(table, branch)
    one, two = place.ours.open(table, "first"), place.ours.open(table, "second")
    one.commitTransaction()
    seen, _ = place.ours.attempt(two.commitTransaction)
    _only(place, table, ["base", "first"], ["first"], kept="second")
    return seen


def two_publishers(place: Place) -> Seen:
    """One attempt's commit arrives while the other's is on its way."""
    table = place.table("publishers", "base")
    place.ours.stage(table, "ours")
    place.theirs.stage(table, "theirs")
    other = place.theirs.open(table, "theirs")
    seen = _in_flight(place, table, "ours", other.commitTransaction)
    _only(place, table, ["base", "theirs"], ["theirs"], kept="ours")
    return seen


def two_first_publishers(place: Place) -> Seen:
    """The same on a table without any snapshot."""
    table = place.table("first")
    place.ours.stage(table, "ours")
    place.theirs.stage(table, "theirs")
    other = place.theirs.open(table, "theirs")
    seen = _in_flight(place, table, "ours", other.commitTransaction)
    _only(place, table, ["theirs"], ["theirs"], kept="ours")
    return seen


def two_overwrites(place: Place) -> Seen:
    """The same with the fast-forward of OVERWRITE and MERGE."""
    table = place.table("overwrites", "base")
    place.ours.stage(table, "ours", mode="overwrite")
    place.theirs.stage(table, "theirs", mode="overwrite")
    other = place.theirs.open(table, "theirs", mode="overwrite")
    seen = _in_flight(place, table, "ours", other.commitTransaction, mode="overwrite")
    _only(place, table, ["theirs"], ["theirs"], kept="ours")
    return seen


def foreign_append(place: Place) -> Seen:
    """A stranger appends while our append is on its way; then we publish again."""
    table = place.table("foreign", "base")
    place.ours.stage(table, "ours")
    seen = _in_flight(place, table, "ours", lambda: place.theirs.append(table, "foreign"))
    _only(place, table, ["base", "foreign"], [], kept="ours")
    assert place.ours.publish(table, "ours")[0] is Seen.LANDED
    _only(place, table, ["base", "foreign", "ours"], ["ours"], kept=None)
    return seen


def foreign_append_under_overwrite(place: Place) -> Seen:
    """A stranger appends while our overwrite is on its way; it cannot be published again."""
    table = place.table("under", "base")
    place.ours.stage(table, "ours", mode="overwrite")
    seen = _in_flight(
        place, table, "ours", lambda: place.theirs.append(table, "foreign"), mode="overwrite"
    )
    _only(place, table, ["base", "foreign"], [], kept="ours")
    assert place.ours.publish(table, "ours", mode="overwrite")[0] is Seen.CONFLICT
    return seen


def foreign_property(place: Place) -> Seen:
    """A user sets a property of the table while our publish is on its way: it is not lost."""
    table = place.table("property", "base")
    place.ours.stage(table, "ours")
    seen = _in_flight(
        place, table, "ours", lambda: place.theirs.set_property(table, "owner", "them")
    )
    if seen is not Seen.LANDED:
        _only(place, table, ["base"], [], kept="ours")
        assert place.ours.publish(table, "ours")[0] is Seen.LANDED
    _only(place, table, ["base", "ours"], ["ours"], kept=None)
    assert place.ours.property_of(table, "owner") == "them"
    return seen


def rollback(place: Place) -> Seen:
    """Main is set back by hand while our append is on its way."""
    table = place.table("rollback", "base", "bad")
    good = place.theirs.history(table)[-1]
    place.ours.stage(table, "ours")
    seen = _in_flight(place, table, "ours", lambda: place.theirs.rollback(table, good))
    _only(place, table, ["base"], [], kept="ours")
    return seen


def rollback_under_overwrite(place: Place) -> Seen:
    """Main is set back while our fast-forward is on its way, which would undo that."""
    table = place.table("undo", "base", "bad")
    good = place.theirs.history(table)[-1]
    place.ours.stage(table, "ours", mode="overwrite")
    seen = _in_flight(
        place, table, "ours", lambda: place.theirs.rollback(table, good), mode="overwrite"
    )
    _only(place, table, ["base"], [], kept="ours")
    return seen


def rollback_before_opening(place: Place) -> Seen:
    """Main is set back before an overwrite is published: what the catalog alone would do."""
    table = place.table("before", "base", "bad")
    place.ours.stage(table, "ours", mode="overwrite")
    place.theirs.rollback(table, place.theirs.history(table)[-1])
    seen, _ = place.ours.publish(table, "ours", mode="overwrite")
    # The rows of the overwrite, and in its lineage the snapshot that was taken back.
    assert len(place.ours.history(table)) == (3 if seen is Seen.LANDED else 1)
    return seen


def branch_dropped(place: Place) -> Seen:
    """A clean-up drops our branch while our publish is on its way."""
    return _branch_dropped(place, asserts_branch=True)


def branch_dropped_unasserted(place: Place) -> Seen:
    """The same without the operation that makes the commit name the branch."""
    return _branch_dropped(place, asserts_branch=False)


def _branch_dropped(place: Place, *, asserts_branch: bool) -> Seen:
    table = place.table("dropped", "base")
    place.ours.stage(table, "ours")
    seen = _in_flight(
        place,
        table,
        "ours",
        lambda: place.theirs.drop_branch(table, "ours"),
        **({} if asserts_branch else {"asserts_branch": False}),
    )
    landed = seen is Seen.LANDED
    _only(place, table, ["base", "ours"] if landed else ["base"], ["ours"] * landed, kept=None)
    return seen


def properties_only(place: Place) -> Seen:
    """A job without rows writes properties alone, on a list that is old by then."""
    table = place.table("properties", "base")
    place.theirs.stage(table, "theirs")
    transaction = place.java.load(table).newTransaction()
    transaction.updateProperties().set(JOBS, "ours").commit()
    other = place.theirs.open(table, "theirs")
    seen = _while_sent(place, transaction.commitTransaction, other.commitTransaction)
    assert place.ours.files(table) == ["base", "theirs"]
    # Whether at once or by Iceberg's own retry: the list of the other job is gone.
    assert place.ours.jobs(table) == (["ours"] if seen is Seen.LANDED else ["theirs"])
    return seen


def empty_append(place: Place) -> Seen:
    """A job without rows publishes an empty append by the common path."""
    table = place.table("empty", "base")
    place.ours.stage(table, "ours", mode="nothing")
    place.theirs.stage(table, "theirs")
    other = place.theirs.open(table, "theirs")
    seen = _in_flight(place, table, "ours", other.commitTransaction)
    _only(place, table, ["base", "theirs"], ["theirs"], kept="ours")
    assert place.ours.publish(table, "ours")[0] is Seen.LANDED
    _only(place, table, ["base", "theirs"], ["theirs", "ours"], kept=None)
    return seen


def two_creators(place: Place) -> Seen:
    """Eight clients make one table at once; what are those told who did not?"""
    table = place.name_of("creators")
    clients = [place.ours, place.theirs] * 4
    with ThreadPoolExecutor(len(clients)) as pool:
        told = list(pool.map(lambda one: one.attempt(one.builder(table).create), clients))
    lost = {seen for seen, _ in told} - {Seen.LANDED}
    # In such a crowd Nessie answers some with a bad request, which says nothing: they have to look.
    unsure = {(place.name, what) for seen, what in told if seen is Seen.UNKNOWN}
    assert unsure <= {("NESSIE_NATIVE", "NessieBadRequestException")}, told
    certain: list[Seen] = sorted(lost - {Seen.UNKNOWN})
    assert place.ours.files(table) == []
    assert len(certain) <= 1, told
    assert not lost or [seen for seen, _ in told].count(Seen.LANDED) == 1, told
    if certain:
        return certain[0]
    return Seen.UNKNOWN if lost else Seen.LANDED


def creator_in_flight(place: Place) -> Seen:
    """Somebody makes the table while our request to make it is on its way."""
    table = place.name_of("creator")
    create = place.ours.builder(table).create
    seen = _while_sent(place, create, lambda: place.theirs.create(table, "a"), is_create)
    assert place.ours.files(table) == ["a"]
    return seen


def made_anew(place: Place) -> Seen:
    """The table is dropped and made again while our publish is on its way."""
    table = place.table("anew", "base")
    place.ours.stage(table, "ours")

    def anew() -> None:
        assert isinstance(place.theirs, Client)
        place.theirs.drop(table)
        place.theirs.create(table, "other")

    seen = _in_flight(place, table, "ours", anew)
    _only(place, table, ["other"], [], kept=None)
    return seen


def replaced(place: Place) -> Seen:
    """A job is published while a replacement of the whole table is on its way."""
    table = place.table("replaced", "base")
    place.theirs.stage(table, "theirs")
    transaction = place.java.builder(table).createOrReplaceTransaction()
    other = place.theirs.open(table, "theirs")
    seen = _while_sent(place, transaction.commitTransaction, other.commitTransaction)
    assert place.ours.files(table) == ([] if seen is Seen.LANDED else ["base", "theirs"])
    return seen


def _only(place: Place, table: str, files: list[str], jobs: list[str], kept: str | None) -> None:
    """The table has exactly this, whole: nothing of a refused transaction is there."""
    found = place.theirs.files(table), place.theirs.jobs(table)
    assert found == (files, jobs), f"{table}: {found}"
    assert (kept is None) or kept in place.theirs.refs(table)
