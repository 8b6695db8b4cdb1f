"""What a REST catalog is asked, by the requests that leave this machine."""

from __future__ import annotations

import json
from typing import Any

import requests
from requests.adapters import BaseAdapter

from lakeload_jobs.formats.iceberg.catalogs.http import Identity
from lakeload_jobs.formats.iceberg.catalogs.rest_tables import RestTables
from lakeload_jobs.formats.iceberg.commits.definitions import UNSORTED, new_schema, partition_spec
from lakeload_jobs.formats.iceberg.commits.metadata import Json, NewTable


class Server(BaseAdapter):
    """A catalog that tells its configuration, and takes whatever it is sent."""

    def __init__(self, config: Json) -> None:
        super().__init__()
        self.config = config
        self.bodies: list[Json] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        response = requests.Response()
        response.status_code = 200
        answer = self.config
        if request.method == "POST":
            self.bodies.append(json.loads(request.body or b""))
            answer = {"metadata": {"format-version": 2, "location": "s3://lake/shop/orders"}}
        response._content = json.dumps(answer).encode()
        return response

    def close(self) -> None:
        pass


def test_new_tables_have_the_properties_that_the_catalog_wants() -> None:
    server = Server(
        {
            "defaults": {"table-default.owner": "data", "table-default.write.format": "orc"},
            "overrides": {"table-override.gc.enabled": "false", "prefix": "shop"},
        }
    )
    session = requests.Session()
    session.mount("http://", server)
    tables = RestTables(
        session, Identity(), "http://catalog.example.com", None, (), vended=False, advises=False
    )
    schema = new_schema([{"id": 0, "name": "id", "required": False, "type": "long"}])
    properties = {"write.format": "parquet", "gc.enabled": "true"}
    new = NewTable(schema, partition_spec(schema, ()), UNSORTED, properties)
    tables.create("shop", "orders", new, None)
    [body] = server.bodies
    assert body["properties"] == {
        "owner": "data", "write.format": "parquet", "format-version": "2", "gc.enabled": "false",
    }  # fmt: skip
