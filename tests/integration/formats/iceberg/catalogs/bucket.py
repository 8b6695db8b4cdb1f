"""A bucket that takes metadata files."""

from __future__ import annotations


class Bucket:
    """Metadata files that nobody reads."""

    def read(self, location: str) -> bytes:
        """No request of these tests reads any."""
        raise AssertionError(location)

    def write(self, location: str, data: bytes) -> None:
        """Take a file."""

    def delete(self, location: str) -> None:
        """None is old."""
        raise AssertionError(location)
