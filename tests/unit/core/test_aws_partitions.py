"""Partitions of AWS, compared with those that its own library knows."""

from __future__ import annotations

import re
from typing import Any

import botocore.loaders
import pytest

from lakeload_jobs.core.aws_partitions import AWS_DOMAINS, domain, partition

KNOWN: list[dict[str, Any]] = botocore.loaders.create_loader().load_data("partitions")["partitions"]


@pytest.mark.parametrize("known", KNOWN, ids=[known["id"] for known in KNOWN])
def test_a_region_is_of_the_partition_that_aws_puts_it_in(known: dict[str, Any]) -> None:
    regions = [name for name in known["regions"] if re.fullmatch(known["regionRegex"], name)]
    assert regions
    for region in regions:
        assert (partition(region), domain(region)) == (known["id"], known["outputs"]["dnsSuffix"])


def test_the_domains_are_all_that_aws_has() -> None:
    assert set(AWS_DOMAINS) == {f".{known['outputs']['dnsSuffix']}" for known in KNOWN}
