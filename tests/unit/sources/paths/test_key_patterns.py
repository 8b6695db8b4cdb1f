"""Globs over keys mean what they mean over local paths."""

from __future__ import annotations

import itertools
import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.paths.key_patterns import KeyPattern, last_name_glob
from lakeload_jobs.sources.paths.local_listing import expand
from tests.environments import many

KEYS = (
    *("a.csv", "b.csv", "ab/c.csv", "ab/d/e.csv", "b/c.csv", "b/x=1/a.csv", "b/_tmp/a.csv"),
    *("_SUCCESS", ".b.csv", "[a].csv", "a b/+.csv"),
)


def by_pattern(pattern: str) -> set[str]:
    """Return the keys that match, and the folders that do."""
    found = KeyPattern("bucket", pattern)
    roots = {key: found.root_of(key) for key in KEYS}
    return {root or key for key, root in roots.items() if root is not None}


def by_glob(folder: Path, pattern: str) -> set[str]:
    """Return what a local path of that pattern names, below the folder."""
    try:
        return {path.removeprefix(f"{folder}/") for path in expand([f"{folder}/{pattern}"])}
    except LoadFailed:
        return set()


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder with the keys as files."""
    made = Path(tempfile.mkdtemp())
    for key in KEYS:
        (made / key).parent.mkdir(parents=True, exist_ok=True)
        (made / key).write_text("x")
    return made


NAMES = ["*", "**", "?", "a*", "*.csv", "[ab]*", "[!a]*", "[[]a].csv", "b", "x=*", "c.csv", "_*"]


def test_patterns_name_the_keys_they_would_name_as_files(folder: Path) -> None:
    patterns = [
        "/".join(names) for size in (1, 2) for names in itertools.product(NAMES, repeat=size)
    ]
    patterns += ["**/b/*", "b/**/*.csv", "*/*/*", "ab/**/e.csv", "b/_tmp/*", "**/_tmp/*.csv"]

    different = {
        pattern: (by_pattern(pattern), by_glob(folder, pattern))
        for pattern in patterns
        if KeyPattern("bucket", pattern).magic and by_pattern(pattern) != by_glob(folder, pattern)
    }

    assert different == {}


def test_key_pattern_lists_its_fixed_prefix_only() -> None:
    assert KeyPattern.parse("s3://b/data/2026-*/x?.csv").prefix == "data/2026-"
    assert KeyPattern.parse("s3://b/data/x.csv").prefix == "data/x.csv"
    assert KeyPattern.parse("s3://b/data/*.csv").flat
    assert not KeyPattern.parse("s3://b/data/*/x.csv").flat
    assert not KeyPattern.parse("s3://b/data/**").flat


def test_a_pattern_that_ends_with_a_slash_names_folders_only() -> None:
    pattern = KeyPattern.parse("s3://b/data/*/")

    assert pattern.root_of("data/a/x.csv") == "data/a"
    assert pattern.root_of("data/x.csv") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://b/d/*.csv", "*.csv"),
        ("/d/[!a]{1,2}.csv", "[^a]\\{1\\,2\\}.csv"),
        ("s3://b/*/x.csv", None),
        ("s3://b/d/x.csv", None),
        ("s3://b/d/**", None),
    ],
)
def test_the_last_name_of_a_glob_is_one_of_hadoop(path: str, expected: str | None) -> None:
    assert last_name_glob(path) == expected


@given(st.text(string.printable, max_size=20), st.text(string.printable, max_size=20))
@settings(max_examples=many(200))
def test_key_pattern_matches_any_key_without_an_error(pattern: str, key: str) -> None:
    found = KeyPattern("bucket", pattern).root_of(key)

    assert found is None or found == "" or key.startswith(f"{found}/")
