"""`lakeload init --from-url`: pipelines with every table that a database has. No Spark."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lakeload.app import app
from lakeload.documents.load import load_pipeline
from tests.servers.mariadb import PASSWORD as MARIA_PASSWORD
from tests.servers.mariadb import USER as MARIA_USER
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import PASSWORD, USER, Postgres

TABLES = """
CREATE SCHEMA sales;
CREATE TABLE orders (id int, part int, added date NOT NULL, "Changed at" timestamptz NOT NULL,
                     PRIMARY KEY (id, part));
CREATE TABLE keyless (a int, updated_at timestamp);
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE VIEW open_orders AS SELECT * FROM orders;
CREATE MATERIALIZED VIEW sales.kept AS SELECT * FROM orders;
CREATE TABLE sales."Line.Items" (id int PRIMARY KEY);
"""
LINES = """\
  - table: public.keyless   # no key
    cursor: xmin   # each load finds the rows that are new or changed
  # - table: public.open_orders   # view
  #   on_append_again: FAIL   # set a `cursor`, or each load appends all rows again
  - table: public.orders   # key: id, part
    cursor: xmin   # each load finds the rows that are new or changed
    # detect_deletes: true   # appends the keys of deleted rows; reads all files
    # cursor: "Changed at"   # only if each change gets a greater value, and commits in that order
  - table: public.parted   # key: id
    cursor: xmin   # each load finds the rows that are new or changed
    # detect_deletes: true   # appends the keys of deleted rows; reads all files
"""


def init_database(folder: Path, url: str, *flags: str, **environment: str) -> Result:
    """Run `lakeload init` for a database."""
    place = ("--bucket", "my-data-lake", "--region", "us-east-1", "--no-input")
    command = ["init", str(folder), "--from-url", url, *place, *flags]
    return CliRunner().invoke(app, command, env=environment)


def _tables(folder: Path) -> list[str]:
    document = load_pipeline(folder / "pipeline.yml", {"LAKELOAD_SOURCE_PASSWORD": "x"})
    assert document.warnings == ()
    return [table.table for table in document.model.tables]


def test_a_pipeline_has_every_table_of_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    name = postgres.new_database()
    url = postgres.url(name).replace("://", f"://{USER}@")
    with closing(postgres.connect(name)) as admin:
        admin.execute(TABLES.encode())

        done = init_database(tmp_path, url, "--output", "json", LAKELOAD_SOURCE_PASSWORD=PASSWORD)

        assert done.exit_code == 0, done.output
        text = (tmp_path / "pipeline.yml").read_text(encoding="utf-8")
        assert LINES in text
        assert "password: {env: LAKELOAD_SOURCE_PASSWORD}" in text
        assert not [path for path in tmp_path.iterdir() if PASSWORD in path.read_text("utf-8")]
        found = _tables(tmp_path)
        assert json.loads(done.stdout)["tables"] == found
        assert [one["name"] for one in json.loads(done.stdout)["variables"]] == [
            "LAKELOAD_SOURCE_PASSWORD"
        ]

        # The password as libpq finds it, and UPSERT where there is a key.
        passwords = tmp_path / "pgpass"
        passwords.write_text(f"*:*:*:{USER}:{PASSWORD}\n", encoding="utf-8")
        passwords.chmod(0o600)
        other = tmp_path / "other"
        flags = ("--table-format", "ICEBERG", "--mode", "upsert")
        done = init_database(other, url, *flags, PGPASSFILE=str(passwords))

        assert done.exit_code == 0, done.output
        assert _tables(other) == found
        assert f"lakeload test-connection {other / 'pipeline.yml'}" in done.output
        document = load_pipeline(other / "pipeline.yml", {})
        assert [table.cursor for table in document.model.tables] == [None, *["xmin"] * 3]
        assert [table.mode for table in document.model.tables] == [
            "OVERWRITE", "UPSERT", "UPSERT", "UPSERT",
        ]  # fmt: skip
        assert not (other / ".env").exists()

        # Without `--mode` small tables are replaced; the size of a partitioned one is not asked.
        done = init_database(tmp_path / "own", url, *flags[:2], PGPASSFILE=str(passwords))
        assert done.exit_code == 0, done.output
        document = load_pipeline(tmp_path / "own" / "pipeline.yml", {})
        assert {table.table: table.mode for table in document.model.tables} == {
            "public.keyless": "OVERWRITE",
            "public.orders": "OVERWRITE",
            "public.parted": "UPSERT",
            'sales."Line.Items"': "OVERWRITE",
        }


def test_a_pipeline_has_every_table_of_mariadb(mariadb: MariaDb, tmp_path: Path) -> None:
    name = mariadb.new_database()
    mariadb.run(
        "CREATE TABLE orders (id int PRIMARY KEY, modified datetime NOT NULL)",
        "CREATE VIEW seen AS SELECT * FROM orders",
        database=name,
    )
    url = mariadb.url(name).replace("://", f"://{MARIA_USER}@")

    done = init_database(tmp_path, url, LAKELOAD_SOURCE_PASSWORD=MARIA_PASSWORD)

    assert done.exit_code == 0, done.output
    text = (tmp_path / "pipeline.yml").read_text(encoding="utf-8")
    assert f"  - table: {name}.orders   # key: id\n    on_append_again: FAIL   #" in text
    assert "    # cursor: modified   # only if" in text
    assert f"  # - table: {name}.seen   # view\n" in text
    assert f"{name}.orders" in _tables(tmp_path)

    flags = ("--table-format", "ICEBERG")
    done = init_database(tmp_path / "own", url, *flags, LAKELOAD_SOURCE_PASSWORD=MARIA_PASSWORD)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "own" / "pipeline.yml").read_text(encoding="utf-8")
    assert f"  - table: {name}.orders   # key: id\n    mode: OVERWRITE   #" in text


@pytest.mark.parametrize(
    ("url", "flags", "message", "hint"),
    [
        ("mysql://a:b@h/shop", (), "the URL carries a password", "LAKELOAD_SOURCE_PASSWORD"),
        ("postgresql://h", (), "does not name one host and one database", "postgresql://db."),
        ("sqlite:///x", (), "is not a database that lakeload reads", "one of"),
        ("postgresql://127.0.0.1:1/x", (), "127.0.0.1:1 failed", "LAKELOAD_SOURCE_PASSWORD"),
        ("postgresql://127.0.0.1:1/x", ("--path", "a.csv"), "`--path` has no effect with", ""),
    ],
)
def test_what_is_no_database_is_refused_and_nothing_is_written(
    tmp_path: Path, url: str, flags: tuple[str, ...], message: str, hint: str
) -> None:
    done = init_database(tmp_path / "new", url, *flags)

    assert done.exit_code in (2, 3), done.output
    text = " ".join(done.output.split())
    assert message in text
    assert hint in text
    assert not (tmp_path / "new").exists()
