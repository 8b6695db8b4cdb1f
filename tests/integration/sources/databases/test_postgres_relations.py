"""What can be read of PostgreSQL, and the error of what cannot. No Spark: rows come as splits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import trustme

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.spec import (
    CONTRACT_VERSION,
    ColumnsSpec,
    DestinationSpec,
    JdbcInput,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.sources.base import NO_COLUMNS, Rows
from lakeload_jobs.sources.databases.engines.postgres import adbc as adbc
from lakeload_jobs.sources.databases.engines.postgres import catalog as product
from lakeload_jobs.sources.databases.engines.postgres import snapshot as product_snapshot
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ExportedSnapshot
from lakeload_jobs.sources.databases.engines.postgres.sql import literal
from lakeload_jobs.sources.databases.engines.registry import connect_databases
from tests.integration.sources.databases.conftest import Database
from tests.servers.postgres import PASSWORD, USER, Postgres
from tests.unit.launch.specs import SYNCED


def snapshot_of(rows: Rows) -> ExportedSnapshot:
    """Return the snapshot in which rows are read."""
    snapshot = cast("Any", rows.check_unchanged).__self__
    assert isinstance(snapshot, ExportedSnapshot)
    return snapshot


@contextmanager
def opened(
    given: JdbcInput,
    key: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    **changes: Any,
) -> Iterator[Rows]:
    """Open the rows of a table as a load does, with these settings of the table."""
    table = TableSpec(
        "t", "shop", "t", given, "0" * 64, ColumnsSpec(exclude=exclude), primary_key=key
    )
    spec = JobSpec(
        CONTRACT_VERSION, "shop", "job", "attempt", SYNCED, DestinationSpec("none", "us-east-1"),
        (table,), "", "",
    )  # fmt: skip
    spec = replace(spec, **changes)
    source = connect_databases(spec, AwsSession(spec.destination))(table, given)
    with closing(source):
        yield source.slice(cast("Any", None)).open(cast("Any", None), NO_COLUMNS)


def read(given: JdbcInput, **changes: Any) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    with opened(given, **changes) as rows:
        assert rows.splits is not None
        batches = [batch for part in rows.splits.parts for batch in rows.splits.read(part)]
        assert sum(batch.num_rows for batch in batches) == sum(rows.splits.counts or ())
        return pa.Table.from_batches(batches, rows.splits.read.schema).to_pylist()  # type: ignore[attr-defined]


def error_of(given: JdbcInput, **changes: Any) -> LakeloadError:
    """Return the error of a load."""
    with pytest.raises(LakeloadError) as raised:
        read(given, **changes)
    assert PASSWORD not in raised.value.message
    return raised.value


RELATIONS = """
CREATE TABLE plain (id int PRIMARY KEY, day date);
INSERT INTO plain SELECT n, '2024-01-01' FROM generate_series(1, 2000) n;
CREATE VIEW a_view AS SELECT * FROM plain;
CREATE MATERIALIZED VIEW a_stored_view AS SELECT * FROM plain;
CREATE TABLE "a ""partitioned"" table" (id int, day date) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF "a ""partitioned"" table" FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF "a ""partitioned"" table" FOR VALUES FROM (100) TO (9999)
  PARTITION BY HASH (id);
CREATE TABLE p3 PARTITION OF p2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p4 PARTITION OF p2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO "a ""partitioned"" table" SELECT * FROM plain;
CREATE TABLE parent (id int, day date); CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT * FROM plain WHERE id <= 900;
INSERT INTO child SELECT * FROM plain WHERE id > 900;
"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("plain", 3),
        ("a_view", 1),
        ("a_stored_view", 3),
        ('a "partitioned" table', 3),
        ("parent", 3),
    ],
)
def test_every_row_of_a_relation_is_read_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, parts: int
) -> None:
    monkeypatch.setattr(product_snapshot, "_PART_BYTES", 8192)
    database.run(RELATIONS)
    given = replace(database.input, table=name)

    with opened(given) as rows:
        assert rows.splits is not None
        assert len(rows.splits.parts) == parts
    assert sorted(row["id"] for row in read(given)) == list(range(1, 2001))


def test_a_foreign_table_is_read(database: Database) -> None:
    database.run(
        RELATIONS + "CREATE EXTENSION postgres_fdw; CREATE SERVER other FOREIGN DATA WRAPPER"
        f" postgres_fdw OPTIONS (host '127.0.0.1', port '{database.input.port}',"
        f" dbname '{database.input.name}'); CREATE USER MAPPING FOR {USER} SERVER other"
        f" OPTIONS (user '{USER}', password {literal(PASSWORD)});"
        " CREATE FOREIGN TABLE far (id int, day date) SERVER other OPTIONS (table_name 'plain')"
    )

    assert len(read(replace(database.input, table="far"))) == 2000


def test_a_query_is_read_with_exact_types(database: Database) -> None:
    database.run("CREATE DOMAIN price AS numeric(9,3); CREATE TYPE mood AS ENUM ('ok')")
    query = (
        "SELECT 1.5::price AS price, 'ok'::mood AS mood, '%s' AS text, '24:00'::time AS at,\n"
        " 9999999999.99::numeric(12,2) AS n -- the end;\n;"
    )
    given = replace(database.input, schema="", table="", query=query)

    with opened(given) as rows:
        types = {field.name: field.dataType.simpleString() for field in rows.schema}
    assert types == {
        "price": "decimal(9,3)",
        "mood": "string",
        "text": "string",
        "at": "string",
        "n": "decimal(12,2)",
    }
    (row,) = read(given)
    assert (str(row["price"]), row["mood"], row["text"]) == ("1.500", "ok", "%s")
    assert (row["at"], str(row["n"])) == ("24:00:00.000000", "9999999999.99")


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("SELECT 1 AS a, 2 AS a", "the query has two columns named `a`", "AS a_2"),
        ("SELECT 1, 2", "the query has two columns named `?column?`", "AS column_2"),
        ("SELECT FROM WHERE", "syntax error", "check the query"),
        ("DELETE FROM plain", "syntax error", "check the query"),
        ("WITH d AS (DELETE FROM plain RETURNING 1) SELECT * FROM d", "SQLSTATE 0A000", None),
        ("SELECT 1 / (id - 7) AS x FROM plain", "division by zero", "columns.exclude"),
        ("SELECT nothing FROM plain", "nothing", "run again"),
    ],
)
def test_a_query_that_cannot_be_read_is_an_error(
    database: Database, query: str, message: str, hint: str | None
) -> None:
    database.run(RELATIONS)

    error = error_of(replace(database.input, schema="", table="", query=query))

    assert isinstance(error, LoadFailed)
    assert message in error.message
    assert not error.retryable
    assert hint is None or hint in (error.hint or "")
    assert database.run("SELECT count(*) FROM plain").fetchall() == [(2000,)]


def test_missing_tables_and_schemas_are_named(database: Database) -> None:
    database.run(RELATIONS)

    error = error_of(replace(database.input, table="plan"))
    assert "has no table `public.plan`" in error.message
    assert error.hint == "did you mean `public.plain`?"
    assert "there is no schema `Public`" in (
        error_of(replace(database.input, schema="Public")).hint or ""
    )
    other = replace(database.input, name="no_such_database")
    error = error_of(other)
    assert isinstance(error, Refused)
    assert "no_such_database" in error.message


def test_missing_rights_are_named_and_excluded_columns_need_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"reader_{database.input.name}"
    database.run(RELATIONS + f"; CREATE ROLE {user} LOGIN PASSWORD {literal(PASSWORD)}")
    try:
        given = replace(database.input, user=user, table="plain")
        error = error_of(given)
        assert "SQLSTATE 42501" in error.message
        assert "GRANT SELECT" in (error.hint or "")
        database.run(f"GRANT SELECT (id) ON plain TO {user}")
        assert "SQLSTATE 42501" in error_of(given).message

        database.run(f"ALTER ROLE {user} CONNECTION LIMIT 0")
        error = error_of(given)
        assert isinstance(error, Refused)
        assert error.retryable
    finally:
        database.run(f"DROP OWNED BY {user}; DROP ROLE {user}")


def test_settings_of_the_role_and_the_database_do_not_change_values(
    postgres: Postgres, database: Database
) -> None:
    user = f"other_{database.input.name}"
    name = f"latin_{database.input.name}"
    database.run(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    with closing(postgres.connect(name, client_encoding="UTF8")) as admin:
        admin.execute(
            f"CREATE ROLE {user} LOGIN PASSWORD {literal(PASSWORD)};"
            f"ALTER ROLE {user} SET TimeZone = 'Asia/Tokyo'; ALTER ROLE {user} SET DateStyle = SQL;"
            f"ALTER ROLE {user} SET bytea_output = 'escape'; ALTER ROLE {user} SET"
            f" extra_float_digits = -5; ALTER ROLE {user} SET IntervalStyle = sql_standard;"
            f"ALTER ROLE {user} SET default_transaction_isolation = 'serializable';"
            f"ALTER ROLE {user} SET standard_conforming_strings = off;"
            "CREATE TABLE orders AS SELECT 'é' AS text, '1 day 2 hours'::interval AS i,"
            " '2024-01-01 00:00+00'::timestamptz AS at, ARRAY[0.1::float8] AS f,"
            " ARRAY['2024-01-01 00:00+00'::timestamptz] AS ats;"
            f"GRANT SELECT ON orders TO {user}"
        )
        try:
            (row,) = read(replace(database.input, name=name, user=user))
        finally:
            admin.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")
    assert row == {
        "text": "é",
        "i": "P1DT2H",
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "f": "[0.1]",
        "ats": '["2024-01-01T00:00:00+00:00"]',
    }


def test_a_database_without_an_encoding_is_rejected(postgres: Postgres, database: Database) -> None:
    name = f"ascii_{database.input.name}"
    database.run(
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
        " TEMPLATE template0"
    )
    assert "SQL_ASCII" in error_of(replace(database.input, name=name)).message


def test_row_level_security_is_a_warning(database: Database) -> None:
    user = f"limited_{database.input.name}"
    database.run(
        RELATIONS + f"; CREATE ROLE {user} LOGIN PASSWORD {literal(PASSWORD)};"
        f"GRANT SELECT ON plain TO {user}; ALTER TABLE plain ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY few ON plain USING (id <= 10)"
    )
    given = replace(database.input, table="plain")
    try:
        with opened(given) as rows:
            assert rows.warnings == ()
        with opened(replace(given, user=user)) as rows:
            assert "row-level security of `public.plain`" in rows.warnings[0]
        assert len(read(replace(given, user=user))) == 10
    finally:
        database.run(f"DROP OWNED BY {user}; DROP ROLE {user}")


def test_a_password_of_pgpass_is_used_by_driver_and_tasks(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    database.run(RELATIONS)
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    path = tmp_path / "pgpass"
    path.write_text(f"127.0.0.1:{database.input.port}:*:{USER}:{escaped}\n", encoding="utf-8")
    path.chmod(0o600)
    given = replace(database.input, table="plain", password=None)
    assert "set `password`" in (error_of(given).hint or "")

    monkeypatch.setenv("PGPASSFILE", str(path))

    assert len(read(given)) == 2000


def test_a_token_of_iam_is_the_password_of_each_connection(
    postgres: Postgres, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server knows one token as a password: that of this moment and these keys.
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    user = f"iam_{database.input.name}"
    aws = AwsSession(DestinationSpec("none", "us-east-1"))
    token = aws.database_token("127.0.0.1", database.input.port, user).reveal()
    database.run(f"{RELATIONS}; CREATE ROLE {user} LOGIN PASSWORD {literal(token)}")
    database.run(f"GRANT SELECT ON plain TO {user}")
    try:
        tls = {"sslmode": "verify-full", "sslrootcert": postgres.ca}
        given = replace(
            database.input, table="plain", user=user, password=None, iam_authentication=True,
            parameters=tls,
        )  # fmt: skip

        assert len(read(given)) == 2000

        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
        error = error_of(given)
        assert isinstance(error, Refused)
        assert "X-Amz" not in error.message
    finally:
        database.run(f"DROP OWNED BY {user}; DROP ROLE {user}")


def test_tls_is_checked_as_the_url_says(
    postgres: Postgres, database: Database, tmp_path: Path
) -> None:
    database.run(RELATIONS)
    given = replace(database.input, table="plain")
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    full = {"sslmode": "verify-full"}

    assert len(read(replace(given, parameters={**full, "sslrootcert": postgres.ca}))) == 2000
    wrong = replace(given, parameters={**full, "sslrootcert": str(other)})
    assert isinstance(error_of(wrong), Refused)
    name = replace(given, host="127.0.0.2", parameters={**full, "sslrootcert": postgres.ca})
    assert isinstance(error_of(name), Refused)


def _terminate(database: Database, *, all_sessions: bool = False) -> int:
    """End the sessions that read a table, or all but the administrator's; return how many."""
    readers = "" if all_sessions else "AND query LIKE 'COPY%'"
    found = database.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <>"
        f" pg_backend_pid() AND datname = current_database() {readers}"
    )
    return len(found.fetchall())


LONG = "SELECT n AS id, repeat('x', 1900) AS text FROM generate_series(1, 8000) n"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader has not read all when the first batch has come."""
    monkeypatch.setattr(adbc, "BATCH_BYTES", 1 << 16)
    monkeypatch.setattr(adbc, "_PAUSE_SECONDS", 0.01)


@pytest.mark.usefixtures("small_batches")
def test_a_lost_connection_goes_on_in_another_one_while_the_snapshot_lives(
    database: Database,
) -> None:
    database.run(f"CREATE TABLE orders AS {LONG}")
    ids: list[Any] = []
    ended = 0
    with opened(database.input) as rows:
        assert rows.splits is not None
        database.run("DELETE FROM orders WHERE id > 7000")
        for batch in rows.splits.read(rows.splits.parts[0]):
            ids += batch.column(0).to_pylist()
            if ended < 2 and len(ids) > 100 + 1000 * ended:
                ended += _terminate(database)
        rows.check_unchanged()

        # An index may serve others, in another order after ANALYZE.
        read = cast("Any", rows.splits.read)
        parts = snapshot_of(rows).parts(read.relation, 1, "id > 0")
        assert not any(part.by_page for part in parts)

    assert ended == 2
    assert ids == list(range(1, 8001))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("relation", "all_sessions", "message"),
    [
        ("TABLE", True, "the connection that held the snapshot has ended"),
        ("VIEW", False, "the connection to PostgreSQL was lost"),
    ],
)
def test_a_lost_connection_that_cannot_go_on_fails_for_another_attempt(
    database: Database, relation: str, all_sessions: bool, message: str
) -> None:
    database.run(f"CREATE {relation} orders AS {LONG}")
    with opened(database.input) as rows:
        assert rows.splits is not None
        batches = rows.splits.read(rows.splits.parts[0])
        next(batches)
        assert _terminate(database, all_sessions=all_sessions)
        with pytest.raises(LoadFailed, match=message) as raised:
            list(batches)
    assert raised.value.retryable
    assert raised.value.hint == "run again: nothing was committed"


def test_a_numeric_of_a_key_has_one_text_for_each_value(database: Database) -> None:
    numbers = "1, 1.0, 1.000, 100, 0.00, 0.0500, -2.50, 1e-10, 1e20, 'NaN'"
    database.run("CREATE TABLE orders (id numeric, v numeric, d numeric(9,3))")
    for number in numbers.split(", "):
        database.run(f"INSERT INTO orders VALUES ({number}, 1.50, 1.5)")
    with opened(database.input, ("id",)) as rows:
        assert rows.splits is not None
        table = pa.Table.from_batches(
            batch for part in rows.splits.parts for batch in rows.splits.read(part)
        )

    texts = [*["1"] * 3, "100", "0", "0.05", "-2.5", "0.0000000001", "1" + "0" * 20, "NaN"]
    assert table["id"].to_pylist() == texts
    # A column of no key keeps the text of the database.
    assert set(table["v"].to_pylist()) == {"1.50"}
    assert {str(value) for value in table["d"].to_pylist()} == {"1.500"}


def test_the_size_of_a_table_has_that_of_its_long_values(database: Database) -> None:
    database.run("CREATE TABLE orders (t text)")
    database.run("ALTER TABLE orders ALTER t SET STORAGE EXTERNAL")
    database.run("INSERT INTO orders SELECT repeat('x', 1000000) FROM generate_series(1, 3)")
    relation = product.find_relation(database.admin, database.input)
    assert relation.bytes > 3_000_000
    assert relation.pages == 1
