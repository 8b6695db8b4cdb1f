"""A claim that is not of its pipeline and source, or names no table, is damage."""

from __future__ import annotations

from typing import cast

import pytest

from lakeload_jobs.core.layout import TableLocation, binding_key
from lakeload_jobs.formats.parquet.log.records import LogDamaged, encode
from lakeload_jobs.formats.parquet.log.target_claims import Binding, Bindings
from lakeload_jobs.storage.objects import Objects

KEY = binding_key("lake", "shop", "orders")


class Bucket:
    """Holds one claim."""

    def __init__(self, claim: Binding) -> None:
        self._claim = encode(claim)

    def get(self, key: str, *, denied_is_missing: bool) -> bytes | None:
        assert denied_is_missing
        return self._claim if key == KEY else None

    def url(self, key: str) -> str:
        return f"s3://lake/{key}"


@pytest.mark.parametrize(
    ("claim", "what"),
    [
        (Binding("t", "other", "orders", "web", "orders"), "`orders` of the pipeline `other`"),
        (Binding("t", "shop", "customers", "web", "orders"), "it is of `customers` of the"),
        (Binding("t", "shop", "orders", "..", "orders"), "is not a normalised name"),
        (Binding("t", "shop", "orders", "web", "a/../b"), "is not a normalised name"),
    ],
)
def test_a_claim_of_another_place_is_damage(claim: Binding, what: str) -> None:
    bindings = Bindings(cast(Objects, Bucket(claim)), "lake")

    with pytest.raises(LogDamaged, match=what) as error:
        bindings.check("shop", "orders", TableLocation("lake", "shop", "orders"))
    assert f"s3://lake/{KEY}" in error.value.message
