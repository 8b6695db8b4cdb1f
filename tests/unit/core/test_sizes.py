"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.sizes import format_size, parse_jvm_memory, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GiB", 1 << 30),
        ("1 GiB", 1 << 30),
        ("512MB", 512_000_000),
        ("512mib", 512 << 20),
        ("1.5KiB", 1536),
        ("0.1TB", 100_000_000_000),
        ("5 B", 5),
        ("1048576", 1 << 20),
        (1048576, 1 << 20),
    ],
)
def test_a_size_is_read_in_bytes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1 giga", "1,5GiB", "1e3MB", "٣GiB", "1GiBs"])
def test_invalid_size_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "size"), [("8g", 8 << 30), ("512M", 512 << 20), ("2gb", 2 << 30), ("64k", 64 << 10)]
)
def test_memory_is_read_as_the_jvm_reads_it(text: str, size: int) -> None:
    assert parse_jvm_memory(text) == size


@pytest.mark.parametrize("text", ["8", "8GiB", "1.5g", "", "g"])
def test_invalid_memory_size_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an amount of memory"):
        parse_jvm_memory(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (12 << 30, "12.0 GiB"),
        (5000 << 40, "5000.0 TiB"),
    ],
)
def test_a_size_is_shown_in_its_largest_unit(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 1 << 50))
def test_a_shown_size_is_within_five_percent(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= max(1, size * 0.05)
