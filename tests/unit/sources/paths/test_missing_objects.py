"""What is said where a path names no object: what is there instead, as far as it may be listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.sources.paths.file_state import NoFiles
from lakeload_jobs.sources.paths.objects import SourceObjects

KEYS = ("landing/flights_2026/a.json", "landing/old.csv", "landing/readme.txt", "other/x.csv")


@dataclass
class _Store:
    """Lists `KEYS` as S3 does, and refuses prefixes that do not begin with an allowed one."""

    allowed: tuple[str, ...]
    deny: str = "because no identity-based policy allows the s3:ListBucket action"

    def list_objects_v2(
        self, *, Bucket: str, Prefix: str, MaxKeys: int, Delimiter: str = ""
    ) -> dict[str, Any]:
        """Return what begins with the prefix, of one level with a delimiter."""
        if not Prefix.startswith(self.allowed):
            answer: Any = {
                "Error": {"Code": "AccessDenied", "Message": f"is not authorized {self.deny}"},
                "ResponseMetadata": {"HTTPStatusCode": 403},
            }
            raise ClientError(answer, "ListObjectsV2")
        keys = [key for key in KEYS if key.startswith(Prefix)]
        below = {key: key[len(Prefix) :].partition("/") for key in keys if Delimiter}
        folders = sorted({Prefix + first + "/" for first, slash, _ in below.values() if slash})
        files = [key for key in keys if not (key in below and below[key][1])]
        return {
            "Contents": [{"Key": key, "Size": 1} for key in files],
            "CommonPrefixes": [{"Prefix": folder} for folder in folders],
        }


def missing(path: str, allowed: Sequence[str] = ("",)) -> NoFiles:
    """Return the error about a path that names nothing."""
    session = cast(AwsSession, SimpleNamespace(s3=_Store(tuple(allowed))))
    with pytest.raises(NoFiles) as caught:
        list(SourceObjects(session).find([path]))
    return caught.value


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("s3://b/landing/*.parquet", "`s3://b/landing/` holds `flights_2026/`, `old.csv`, "),
        ("s3://b/landing/new.csv", "`s3://b/landing/` holds `flights_2026/`, `old.csv`, "),
        ("s3://b/landing/flights_*/*.csv", "`s3://b/landing/` holds `flights_2026/`, `old.csv`"),
        ("s3://b/landing/2026/11/*.csv", "`s3://b/landing/` holds `flights_2026/`, `old.csv`, "),
        ("s3://b/nothing/*.csv", "`s3://b/` holds `landing/`, `other/`"),
        ("s3://b/landing/odl.csv", "did you mean `old.csv`? `s3://b/landing/` holds `flights_2026"),
        ("s3://b/landing/flight-*/*.csv", "did you mean `flights_2026`? `s3://b/landing/` holds"),
        ("s3://b/landings/old.csv", "did you mean `landing`? `s3://b/` holds `landing/`"),
    ],
)
def test_the_nearest_folder_that_is_there_is_shown(path: str, hint: str) -> None:
    assert (missing(path).hint or "").startswith(hint)


def test_a_policy_for_the_pattern_alone_shows_what_begins_like_it() -> None:
    error = missing("s3://b/landing/flights_*/*.csv", allowed=["landing/flights_"])

    assert error.hint == "`s3://b/landing/` holds `flights_2026/`"


def test_a_refused_pattern_names_the_prefix_that_a_policy_has_to_allow() -> None:
    session = cast(AwsSession, SimpleNamespace(s3=_Store(("other/",))))
    with pytest.raises(AwsError) as caught:
        list(SourceObjects(session).find(["s3://b/land ing/flights_*/*.csv"]))

    assert "for the prefix `land ing/flights_` " in (caught.value.hint or "")


def test_explicit_deny_suggests_no_allow() -> None:
    store = _Store(("other/",), "with an explicit deny in a resource-based policy")
    with pytest.raises(AwsError) as caught:
        list(SourceObjects(cast(AwsSession, SimpleNamespace(s3=store))).find(["s3://b/a.csv"]))

    assert (caught.value.hint or "").startswith("remove or narrow the Deny for `s3:ListBucket`")
