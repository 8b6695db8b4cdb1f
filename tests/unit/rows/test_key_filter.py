"""The bits that keys set in a filter, and how many bits there are."""

from __future__ import annotations

import pytest

from lakeload_jobs.rows.key_filter import MOST_BITS, KeyFilter

PLACES = (0, 9, 9, (1 << 15) + 17, MOST_BITS - 1)


@pytest.mark.parametrize(
    ("rows", "bits"),
    [(0, 1 << 15), (1_000, 1 << 15), (2_048, 1 << 15), (2_049, 1 << 16), (1_000_000, MOST_BITS)],
)
def test_a_filter_has_16_bits_for_a_key_as_far_as_it_may(rows: int, bits: int) -> None:
    found = KeyFilter.of(PLACES, rows).bits

    assert len(found) * 8 == bits
    set_bits = {at for at in range(bits) if found[at // 8] >> at % 8 & 1}
    assert set_bits == {place % bits for place in PLACES}


def test_words_have_the_bits_of_the_lowest_places_first() -> None:
    words = KeyFilter.of((0, 5, 64), 1).words.split(",")

    assert words == ["33", "1", *["0"] * 510]
