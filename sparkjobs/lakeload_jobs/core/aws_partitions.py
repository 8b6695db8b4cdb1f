"""AWS partitions: prefixes of ARNs and suffixes of host names.

https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_AWS = ("aws", "amazonaws.com")
_OTHERS = {
    "cn-": ("aws-cn", "amazonaws.com.cn"),
    "us-gov-": ("aws-us-gov", "amazonaws.com"),
    "eusc-": ("aws-eusc", "amazonaws.eu"),
    "us-iso-": ("aws-iso", "c2s.ic.gov"),
    "us-isob-": ("aws-iso-b", "sc2s.sgov.gov"),
    "eu-isoe-": ("aws-iso-e", "cloud.adc-e.uk"),
    "us-isof-": ("aws-iso-f", "csp.hci.ic.gov"),
}
"""The beginning of a region's name → its partition and domain."""

AWS_DOMAINS = tuple(
    f".{domain}" for domain in dict.fromkeys([_AWS[1], *dict(_OTHERS.values()).values()])
)
"""What host names of AWS end with."""


@cache
def regions() -> Mapping[str, str]:
    """Return the regions of all partitions that botocore's list has, each with its description."""
    # Its data alone: importing botocore takes longer than all else that reads a document.
    found = importlib.util.find_spec("botocore")
    [folder] = (found.submodule_search_locations if found else None) or [""]
    data = json.loads(Path(folder, "data", "partitions.json").read_text(encoding="utf-8"))
    return {
        name: region.get("description", "")
        for group in data["partitions"]
        for name, region in group["regions"].items()
        if not name.endswith("-global")
    }


def partition(region: str) -> str:
    """Return the partition of a region: `aws`, `aws-cn`, `aws-us-gov`, …"""
    return _of(region)[0]


def domain(region: str) -> str:
    """Return what the host names of a region's services end with: `amazonaws.com`, …"""
    return _of(region)[1]


_RDS_HOST = re.compile(r"\.([a-z]+(?:-[a-z]+)+-[0-9]+)\.rds\.")


def rds_region(host: str) -> str | None:
    """Return the region of an endpoint of Amazon RDS; None for any other host."""
    found = _RDS_HOST.search(host) if host.endswith(AWS_DOMAINS) else None
    return found[1] if found else None


def _of(region: str) -> tuple[str, str]:
    found = (names for start, names in _OTHERS.items() if region.startswith(start))
    return next(found, _AWS)
