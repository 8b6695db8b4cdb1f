"""What holds for every name, however strange."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from lakeload_jobs.core.names import (
    MAX_NAME_LENGTH,
    RESERVED_COLUMNS,
    normalize,
    schema_name,
    unique_names,
)

NORMALISED = re.compile(r"(?!.*__)(?![0-9])[A-Za-z0-9_]{1,255}")

# Names that meet each other: few letters, their accents, separators, digits and case.
CROWDED = st.lists(
    st.one_of(
        st.text("aAàb_1 2", max_size=4),
        st.builds(lambda tail: "x" * 252 + tail, st.text("xX_12é", min_size=1, max_size=6)),
    ),
    max_size=12,
)
ANY_NAMES = st.lists(st.text(max_size=8), max_size=8)


@given(st.text(), st.booleans())
@example("\u212a\u0301", True)
@example("1" * 300, False)
@example("x" * 254 + "__", False)
def test_a_normalised_name_has_only_the_allowed_letters(name: str, lower: bool) -> None:
    normal = normalize(name, lower=lower)
    assert NORMALISED.fullmatch(normal)
    assert not lower or normal == normal.lower()


@given(st.text(), st.booleans())
def test_normalising_twice_changes_nothing(name: str, lower: bool) -> None:
    normal = normalize(name, lower=lower)
    assert normalize(normal, lower=lower) == normal


@given(st.text())
def test_lower_case_differs_in_case_alone(name: str) -> None:
    assert normalize(name, lower=True) == normalize(name).lower()


@given(st.from_regex(NORMALISED, fullmatch=True))
def test_a_name_that_is_normalised_stays(name: str) -> None:
    assert normalize(name) == name


@given(st.one_of(CROWDED, ANY_NAMES), st.booleans())
def test_unique_names_never_collide_and_stay_normalised(names: list[str], lower: bool) -> None:
    unique = unique_names(names, lower=lower)
    assert len(unique) == len(names)
    assert len({name.lower() for name in unique}) == len(names)
    for name in unique:
        assert NORMALISED.fullmatch(name)
        assert normalize(name, lower=lower) == name


@given(CROWDED)
def test_unique_names_are_the_same_each_time(names: list[str]) -> None:
    assert unique_names(names) == unique_names(list(names))


@given(CROWDED)
def test_the_first_of_equal_names_keeps_its_own(names: list[str]) -> None:
    seen: set[str] = set()
    for name, target in zip(names, unique_names(names), strict=True):
        own = normalize(name)
        if own.lower() not in seen:
            assert target == own
        seen.add(own.lower())


@given(CROWDED)
def test_unique_names_do_not_change_a_second_time(names: list[str]) -> None:
    unique = unique_names(names)
    assert unique_names(unique) == unique


@given(CROWDED, st.integers(0, 12))
def test_appended_names_do_not_change_earlier_ones(names: list[str], cut: int) -> None:
    first = unique_names(names[:cut])
    for name, before, now in zip(names, first, unique_names(names), strict=False):
        assert before == now or before != normalize(name)


@given(CROWDED, st.lists(st.text("aAb_12", max_size=4), max_size=6))
def test_reserved_names_are_not_assigned(names: list[str], taken: list[str]) -> None:
    unique = unique_names(names, taken=taken)
    assert not {name.lower() for name in unique} & {name.lower() for name in taken}


@given(st.lists(st.none() | st.text(max_size=20), min_size=4, max_size=4))
def test_a_schema_is_blank_or_normalised(parts: list[str | None]) -> None:
    glue, prefix, source, namespace = parts
    schema = schema_name(
        glue_prefix=glue, destination_prefix=prefix, source_schema=source, namespace=namespace
    )
    assert schema == "" or NORMALISED.fullmatch(schema)


def test_a_number_leaves_room_within_the_limit_however_many_there_are() -> None:
    unique = unique_names(["x" * 300] * 1200)
    assert max(len(name) for name in unique) == MAX_NAME_LENGTH
    assert unique[-1] == "x" * 250 + "_1199"


def test_ten_thousand_equal_names_are_numbered_quickly() -> None:
    assert unique_names(["a"] * 10_000)[-1] == "a_9999"


def test_reserved_columns_are_names_a_column_could_get() -> None:
    assert all(normalize(name) == name for name in RESERVED_COLUMNS)
