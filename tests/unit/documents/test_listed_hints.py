"""Every hint that names a setting is in the list, with the case that follows it."""

from __future__ import annotations

from functools import cache

import pytest

from tests.hints import ROOT, hints, listed, names_setting, texts
from tests.unit.documents.diagnostics import INVALID

READ = {
    "only its user knows the right one": "an address, a login, a bucket or a file of them",
    "memory, cores or disk of a machine": "what to set depends on the machine",
    "part of a document that is being written": "it is a comment beside the setting",
}
"""Why nothing follows some hints."""
NOT_YET = 0
"""So many hints are followed by no case. A new one is: this number only falls."""


def test_every_hint_that_names_a_setting_is_in_the_list() -> None:
    missing = set(hints()) - listed().keys()
    gone = listed().keys() - set(hints())

    assert not missing, "add them to tests/cases/hints.tsv with the case that follows each"
    assert not gone, "they are in tests/cases/hints.tsv, and in the code no more"


def test_what_follows_a_hint_is_a_case_or_a_reason() -> None:
    names = set(listed().values())
    for named in names - {"not yet"}:
        file, _, case = named.partition(": ")
        known = frozenset(READ) if file == "read" else _strings(file)
        assert known & {case, case.partition(": ")[2] or case}, named
    assert {named.partition(": ")[2] for named in names if named.startswith("read: ")} == set(READ)
    assert list(listed().values()).count("not yet") == NOT_YET


@cache
def _strings(file: str) -> frozenset[str]:
    """Return the strings of a test file, and the names of documents that are cases."""
    documents = [path.stem for path in INVALID.glob("*.yaml")]
    said = (text for text, _ in texts((ROOT / file).read_text("utf-8")))
    return frozenset([*said, *documents])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("set `on_bad_value: 'NULL'`", True),
        ("check the file; or leave the column out with `columns.exclude`", True),
        ("raise `max_deleted`", True),
        ("run `lakeload sync` again", False),
        ("`mode` is UPSERT", False),
        ("set `no_such_setting: 1`", False),
    ],
)
def test_hint_that_names_a_setting_is_recognised(text: str, named: bool) -> None:
    assert names_setting(text) is named
