"""Hints of `validate`, followed literally in the document: the next run says something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.config.problems import Problem
from lakeload.config.yaml_tree import own_yaml
from lakeload.documents.load import check
from tests.hints import clauses, follow, follows, names_setting
from tests.unit.documents.diagnostics import ENVIRONMENT, INVALID, problems

OPEN: dict[str, Any] = {
    "name": "other", "namespace": "elsewhere", "destination_prefix": "team",
    "glue_database_prefix": "team", "bucket": "my-data-lake", "region": "us-east-1",
    "deleted_when": "gone", "cursor": "id", "url": "https://lineage.example.com",
    "format": "CSV", "prefix": "landing", "token": {"env": "TOKEN"}, "format_version": 3,
    "reader": "AUTO", "date_format": "dd.MM.yyyy", "timestamp_format": "dd.MM.yyyy HH:mm",
    "decimal_mark": ",", "thousands_mark": ".", "line_break": "\r\n",
    "primary_key": ["id"], "endpoint_url": "https://store.example.com",
}  # fmt: skip
"""What a reader of a hint fills in, by the setting."""


def _include(document: Any, key: str) -> None:
    columns = document["tables"][0]["columns"]
    columns["include"].append(key.rpartition(".")[2])


def _nest(document: Any, key: str) -> None:
    """Write a dotted key as mappings; `tables[0].` before it is where it stands."""
    table = key.startswith("tables[0].")
    place = document["tables"][0] if table else document
    dotted = key.removeprefix("tables[0].")
    value = place.pop(dotted)
    head, *rest = dotted.split(".")
    for name in reversed(rest):
        value = {name: value}
    home = document if head == "spark" else place
    home[head] = {**home.get(head, {}), **value}


def _use_token(document: Any, key: str) -> None:
    document["lineage"]["url"] = "https://marquez.example.com"
    document["lineage"]["token"] = {"env": "TOKEN"}


def _without_property(document: Any, key: str) -> None:
    del document["spark"]["conf"][key.removeprefix("spark.conf.")]


def _no_exclude(document: Any, key: str) -> None:
    document["tables"][0]["columns"]["exclude"].remove(key.rpartition(".")[2])


def _password(document: Any, key: str) -> None:
    url = document["source"]["url"]
    document["source"]["url"] = url.replace(":secret@", "@").replace("?password=secret", "")
    document["source"]["password"] = {"env": "NAME"}


def _user(document: Any, key: str) -> None:
    source = document["source"]
    source["url"], source["user"] = source["url"].replace("?user=reader", ""), "NAME"


def _tls(document: Any, key: str) -> None:
    document["source"]["url"] += "?sslmode=verify-full&sslrootcert=ca.pem"


def _no_option(document: Any, key: str) -> None:
    del document["source"]["options"][key.rpartition(".")[2]]


def _files(document: Any, key: str) -> None:
    document["source"] |= {"type": "FILES", "format": "CSV"}


BY_HAND: dict[str, Callable[[Any, str], None]] = {
    "add it to `include`": _include,
    "write it as `": _nest,
    "use `token` or `headers`": _use_token,
    "remove the part before `@`": _use_token,
    "remove it from `exclude`": _no_exclude,
    "remove it from the URL, and write `password: ": _password,
    "remove it from the URL, and write `user: ": _user,
    "add `sslmode=verify-full` and `sslrootcert` to `url`": _tls,
    "name the files in the table's `path`": _no_option,
    "use `type: FILES`": _files,
    "give secrets by reference under `credentials`": _without_property,
}
"""What the start of a clause says in words: done to the document, by the setting it is about."""


def followed(document: dict[str, Any], clause: str, key: str) -> dict[str, Any]:
    """Return a document that is changed as a clause says."""
    by_hand = next((do for start, do in BY_HAND.items() if clause.startswith(start)), None)
    if by_hand is None:
        return follow(document, clause, key, **OPEN)
    changed = deepcopy(document)
    by_hand(changed, key)
    return changed


DATABASE = """\
version: 1
name: shop
namespace: shop
destination:
  version: 1
  bucket: my-data-lake
  region: us-east-1
  table_format: ICEBERG
source:
  type: JDBC
  url: postgresql://db.example.com/shop
  user: reader
  password: {env: PASSWORD}
tables:
  - table: public.orders
"""
FILES = """\
version: 1
name: shop
namespace: shop
destination:
  version: 1
  bucket: my-data-lake
  region: us-east-1
  table_format: ICEBERG
source: {type: FILES, format: CSV}
tables:
  - table: orders
    path: orders.csv
"""
SPARK = FILES.replace("{type: FILES, format: CSV}", "{type: SPARK, format: csv}")
MYSQL = DATABASE.replace("postgresql:", "mysql:")
JDBC = DATABASE.replace("postgresql://db.example.com/shop", "jdbc:db2://db.example.com:50000/shop")
OTHER = JDBC.replace("  user: reader\n", "  user: reader\n  jar: drivers/db2.jar\n")
STORE = """\
version: 1
bucket: my-data-lake
region: us-east-1
"""


def _csv(**options: object) -> str:
    return FILES.replace("format: CSV", f"format: CSV, options: {json.dumps(options)}")


def _json(**options: object) -> str:
    return FILES.replace("format: CSV", f"format: NDJSON, options: {json.dumps(options)}")


MORE: dict[str, str] = {
    "a key that is excluded and renamed": FILES
    + "    columns: {exclude: [old], rename: {old: new}}\n",
    "a limit of records that are not set aside": FILES + "    max_rejected: 5\n",
    "a Nessie catalog by its REST API": FILES.replace(
        "  table_format: ICEBERG\n",
        "  table_format: ICEBERG\n"
        "  iceberg: {catalog: {type: NESSIE, api: REST, uri: 'http://localhost:19120/iceberg'}}\n",
    ),
    "deletes that are compared without a key": DATABASE
    + "    detect_deletes: true\n    primary_key: []\n    mode: APPEND\n",
    "deletes that no column tells of": "tracking_columns: [_supa_synced, _supa_job_id]\n"
    + DATABASE
    + "    detect_deletes: true\n    primary_key: [id]\n",
    "a limit of deletes that are not compared": DATABASE + "    max_deleted: 5\n",
    "late rows without a key": DATABASE
    + "    cursor: id\n    lookback: 100\n    primary_key: []\n    mode: APPEND\n",
    "late rows without a cursor": DATABASE + "    lookback: 100\n",
    "a side table with a long name": "on_bad_value: QUARANTINE\n"
    + FILES
    + f"    name: {'a' * 250}\n",
    "a side table that is a target": "on_bad_value: QUARANTINE\n"
    + FILES
    + "  - {table: other, path: other.csv, name: orders_rejected}\n",
    "a region of no cloud": STORE.replace("us-east-1", "moon-1"),
    "a role of another store": STORE
    + "endpoint_url: https://store.example.com\n"
    + "credentials: {role_arn: 'arn:aws:iam::123456789012:role/lake'}\n",
    "a cursor of a table that is replaced": DATABASE + "    cursor: id\n    mode: OVERWRITE\n",
    "records of a database that are set aside": "on_bad_value: QUARANTINE\n" + DATABASE,
    "a password in the URL": DATABASE.replace("//db.", "//reader:secret@db."),
    "a secret parameter of the URL": DATABASE.replace("/shop\n", "/shop?password=secret\n"),
    "a user as a parameter of the URL": DATABASE.replace("/shop\n", "/shop?user=reader\n"),
    "no user of MySQL": MYSQL.replace("  user: reader\n", ""),
    "a token without TLS": DATABASE.replace(
        "  password: {env: PASSWORD}\n", "  iam_authentication: true\n"
    ),
    "a database without its driver": JDBC,
    "a key that a driver does not look up": OTHER + "    mode: UPSERT\n",
    "the transaction ids of MySQL": MYSQL + "    cursor: xmin\n",
    "one snapshot on one connection": DATABASE.replace(
        "  user:", "  consistency: SYNC\n  max_connections: 2\n  user:"
    ),
    "a lock on one connection": MYSQL.replace(
        "  user:", "  consistency: LOCK\n  max_connections: 2\n  user:"
    ),
    "a path among the options": SPARK.replace("format: csv}", "format: csv, options: {path: a}}"),
    "an option that Spark's reader ignores": SPARK.replace(
        "format: csv}", "format: csv, options: {decimal_mark: ','}}"
    ),
    "options of CSV that only Spark's reader supports": _csv(
        enableDateTimeParsingFallback=True, emptyValue="x", locale="de", lineSep="|"
    ),
    "another line break beside backslashes": _csv(backslash_escapes=True, lineSep="\\r\\n"),
    "an escape where quotes have no meaning": _csv(quote="", escape="\\"),
    "options of JSON that only Spark's reader supports": _json(
        allowComments=True,
        allowSingleQuotes=True,
        dropFieldIfAllNull=True,
        enableDateTimeParsingFallback=True,
        prefersDecimal=True,
    ),
    "a path among the options of files": _csv(path="orders"),
    "objects of S3 for a reader of Spark": SPARK.replace("orders.csv", "s3://bucket/orders.csv"),
}
CONFIGS = INVALID.parents[2] / "configs"


def _problems(text: str, folder: Path) -> list[Problem]:
    path = folder / "document.yaml"
    path.write_text(text, encoding="utf-8")
    return check([path], ENVIRONMENT)


def _whole(text: str) -> dict[str, Any]:
    """Return a document as data, its destination within."""
    document = own_yaml(text)
    if not isinstance(document, dict):
        return {}
    if isinstance(name := document.get("destination"), str):
        document["destination"] = own_yaml((CONFIGS / Path(name).name).read_text("utf-8"))
    return document


@cache
def cases() -> dict[str, str]:
    """Return the documents that have hints to follow, by name."""
    found = dict(MORE)
    for path in sorted(INVALID.glob("*.yaml")):
        hinted = [p for p in problems(path.stem) if p.path == path.name and p.hint]
        if any(names_setting(p.hint or "") for p in hinted):
            found[path.stem] = path.read_text("utf-8")
    return found


@pytest.mark.parametrize("name", cases())
def test_what_a_hint_says_of_a_document_changes_it(name: str, tmp_path: Path) -> None:
    document = _whole(cases()[name])
    before = _problems(yaml.safe_dump(document, sort_keys=False), tmp_path)
    hinted = [(p, p.hint) for p in before if p.hint and names_setting(p.hint)]
    assert hinted
    known = {(p.key, p.message) for p in before}
    for problem, hint in hinted:
        told = clauses(hint)
        assert told, hint
        for clause in told:
            changed = followed(document, clause, problem.key)
            after = _problems(yaml.safe_dump(changed, sort_keys=False), tmp_path)
            assert problem.message not in {p.message for p in after if p.key == problem.key}
            fresh = [p for p in after if p.severity == "error" and (p.key, p.message) not in known]
            assert all(p.hint for p in fresh), fresh
    follows(__file__, name, *(hint for _, hint in hinted))
