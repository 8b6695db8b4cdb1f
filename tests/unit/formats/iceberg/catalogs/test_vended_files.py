"""Metadata files with the credentials of a catalog: which, until when, and what is said of them."""

from __future__ import annotations

import io
import time
from collections import Counter
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.vended_credentials import HandedKeys
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, EndpointsSpec, IcebergSpec
from lakeload_jobs.formats.iceberg.catalogs import vended_files
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_files import remove_files
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.catalogs.vended_files import files_for

PLACE = "s3://lake/shop/orders/metadata/a.avro"
CATALOG = CatalogSpec(type="REST", uri="http://catalog.example.com")
DESTINATION = DestinationSpec(
    "lake",
    "eu-central-1",
    endpoints=EndpointsSpec(s3="http://127.0.0.1:9"),
    table_format="ICEBERG",
    iceberg=IcebergSpec(catalog=CATALOG),
)
PLAIN = DestinationSpec(
    "lake",
    "eu-central-1",
    table_format="ICEBERG",
    iceberg=IcebergSpec(catalog=CatalogSpec(type="REST", uri="http://c", access_delegation="NONE")),
)


class Bucket:
    """S3 for some keys; those in `refused` get that code. Objects with `busy` in their names cannot
    be deleted together with others."""

    def __init__(self) -> None:
        self.used: list[HandedKeys] = []
        self.calls: list[tuple[str, str]] = []
        self.refused: dict[str, str] = {}
        self.busy = self.missing = "none"

    def client(self, keys: HandedKeys, **_: float) -> Any:
        """Return a client of these keys."""
        self.used.append(keys)
        bucket, name = self, keys.access_key_id

        class Client:
            def get_object(self, **_: str) -> dict[str, Any]:
                return {"Body": io.BytesIO(bucket.asked(name, "GetObject"))}

            def delete_object(self, **_: str) -> None:
                bucket.asked(name, "DeleteObject")

            def delete_objects(self, **request: Any) -> dict[str, Any]:
                bucket.asked(name, "DeleteObjects")
                objects = request["Delete"]["Objects"]
                return {"Errors": [one for one in objects if bucket.busy in one["Key"]]}

            def put_object(self, **_: Any) -> None:
                bucket.asked(name, "PutObject")

        return Client()

    def asked(self, key: str, operation: str) -> bytes:
        """Note a call, and refuse it if need be."""
        self.calls.append((key, operation))
        code = "NotImplemented" if operation == self.missing else self.refused.get(key)
        if code:
            raise ClientError({"Error": {"Code": code}}, operation)
        return b"data"


class Tables:
    """A catalog that vends other keys each time."""

    def __init__(self, *answers: ReadTable) -> None:
        self.answers = list(answers)
        self.loads = 0

    def load(self, namespace: str, name: str) -> ReadTable | None:
        """Read the table again."""
        self.loads += 1
        assert (namespace, name) == ("shop", "orders")
        return self.answers.pop(0) if self.answers else None


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    found = Bucket()
    monkeypatch.setattr(vended_files, "s3_with", found.client)
    return found


def keys(name: str, *, seconds: float | None = None) -> dict[str, str]:
    """What a catalog says of keys, which end in so many seconds."""
    ends = (
        {} if seconds is None else {vended_files._EXPIRES: str(int((time.time() + seconds) * 1e3))}
    )
    return {"s3.access-key-id": name, "s3.secret-access-key": "canary", **ends}


def table(config: dict[str, str], *credentials: tuple[str, dict[str, str]]) -> ReadTable:
    return ReadTable("shop", "orders", {}, PLACE, None, config, credentials)


def files(given: ReadTable, *later: ReadTable, destination: DestinationSpec = DESTINATION) -> Any:
    return files_for(given, destination, AwsSession(destination), Tables(*later))  # type: ignore[arg-type]


def test_vended_credentials_read_and_write_where_the_catalog_says(bucket: Bucket) -> None:
    opened = files(table({**keys("first"), "s3.region": "us-east-1", "s3.session-token": "t"}))
    assert opened.read(PLACE) == b"data"
    opened.write(PLACE, b"x")
    assert bucket.calls == [("first", "GetObject"), ("first", "PutObject")]
    (used,) = bucket.used
    assert (used.region, used.endpoint, used.path_style) == (
        "us-east-1",
        "http://127.0.0.1:9",
        True,
    )


def test_each_location_gets_the_credentials_of_its_longest_prefix(bucket: Bucket) -> None:
    given = table(
        {"s3.endpoint": "http://store"},
        ("s3://lake", keys("wide")),
        ("s3://lake/shop/orders", keys("narrow")),
        ("s3://other", keys("other")),
    )
    opened = files(given)
    for place in (PLACE, "s3://lake/elsewhere/b.avro", "s3://other/c.avro", PLACE):
        opened.read(place)
    assert [name for name, _ in bucket.calls] == ["narrow", "wide", "other", "narrow"]
    assert {one.endpoint for one in bucket.used} == {"http://store"}


def test_credentials_are_renewed_before_they_expire(bucket: Bucket) -> None:
    opened = files(table(keys("old", seconds=0)), table(keys("new", seconds=3600)))
    opened.read(PLACE)
    opened.read(PLACE)
    assert [name for name, _ in bucket.calls] == ["new", "new"]


def test_credentials_that_last_are_not_renewed(bucket: Bucket) -> None:
    # Shorter than the margin before which others are renewed: half of their life is.
    opened = files(table(keys("old", seconds=200)))
    opened.read(PLACE)
    assert [name for name, _ in bucket.calls] == ["old"]


def test_expired_credentials_of_unknown_life_are_renewed_once(bucket: Bucket) -> None:
    bucket.refused = {"old": "ExpiredToken"}
    opened = files(table(keys("old")), table(keys("new")))
    opened.write(PLACE, b"x")
    assert [name for name, _ in bucket.calls] == ["old", "new"]
    bucket.refused["new"] = "ExpiredToken"
    with pytest.raises(AwsError, match="expired"):
        opened.write(PLACE, b"x")
    assert [name for name, _ in bucket.calls] == ["old", "new", "new", "new"]


def test_files_of_a_dropped_table_are_removed_with_the_credentials_it_had(bucket: Bucket) -> None:
    tables = Tables()
    given = table(keys("old", seconds=0))
    opened: Any = files_for(given, DESTINATION, AwsSession(DESTINATION), tables)  # type: ignore[arg-type]
    places = [f"s3://lake/shop/orders/{number}" for number in range(3)]
    assert remove_files(opened, places).removed == 3
    assert (tables.loads, bucket.calls) == (1, [("old", "DeleteObjects")])


def test_files_are_removed_a_thousand_at_once_and_what_stays_alone(bucket: Bucket) -> None:
    given = table(keys("wide"), ("s3://lake/shop/orders", keys("narrow")))
    places = [f"s3://lake/shop/orders/{number}" for number in range(2500)]
    bucket.busy = "orders/7"
    stay = sum("orders/7" in place for place in places)
    removal = remove_files(files(given), [*places, "s3://lake/elsewhere", "s3://other/place"])
    assert (removal.removed, removal.left) == (2502, ())
    assert Counter(bucket.calls) == {
        ("narrow", "DeleteObjects"): 3,
        ("narrow", "DeleteObject"): stay,
        ("wide", "DeleteObject"): 2,
    }


def test_files_are_removed_alone_where_the_store_has_no_request_for_many(bucket: Bucket) -> None:
    bucket.missing = "DeleteObjects"
    places = [f"s3://lake/shop/orders/{number}" for number in range(3)]
    assert remove_files(files(table(keys("old"))), places).removed == 3
    assert [call for _, call in bucket.calls] == ["DeleteObjects", *["DeleteObject"] * 3]


def test_keys_that_expire_between_files_are_renewed(bucket: Bucket) -> None:
    bucket.refused = {"old": "ExpiredToken"}
    places = [f"s3://lake/shop/orders/{number}" for number in range(3)]
    assert remove_files(files(table(keys("old")), table(keys("new"))), places).removed == 3
    assert bucket.calls == [("old", "DeleteObjects"), ("new", "DeleteObjects")]


def test_what_the_catalog_refuses_is_left(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: str) -> None:
        raise CatalogError("no", code="ForbiddenException", status=403)

    monkeypatch.setattr(Tables, "load", refuse)
    removal = remove_files(files(table(keys("old", seconds=0))), [PLACE])
    assert (removal.removed, removal.left) == (0, (PLACE,))
    assert isinstance(removal.error, CatalogError)


def test_a_missing_permission_names_action_and_file_and_the_catalogs_role(bucket: Bucket) -> None:
    bucket.refused = {"first": "AccessDenied"}
    with pytest.raises(AwsError) as caught:
        files(table(keys("first"))).write(PLACE, b"x")
    assert f"writing `{PLACE}`: access denied" in caught.value.message
    assert "`s3:PutObject`" in (caught.value.hint or "")
    assert "that the catalog vends" in (caught.value.hint or "")
    assert "canary" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("given", "destination"),
    [(table({}), DESTINATION), (table(keys("theirs")), PLAIN)],
    ids=["nothing vended", "nothing asked for"],
)
def test_the_destinations_own_credentials_are_used(
    given: ReadTable, destination: DestinationSpec, bucket: Bucket
) -> None:
    assert type(files(given, destination=destination)) is LakeFiles
    assert bucket.used == []
