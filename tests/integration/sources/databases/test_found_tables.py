"""Tables that globs find and keys that tables have, in real servers and without Spark."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from lakeload.commands.lake_tables import request_of
from lakeload.commands.source_tables import with_found_tables
from lakeload.documents.load import PipelineDocument
from lakeload.documents.named_files import NamedFiles
from lakeload.documents.spec import specs_of, table_specs
from lakeload.launch.spec import select_tables
from lakeload.ui.display import no_phases
from lakeload_jobs.contract.errors import InvalidInput, Refused
from lakeload_jobs.contract.spec import JdbcInput
from tests.hints import follows
from tests.servers.mariadb import PASSWORD as MARIA_PASSWORD
from tests.servers.mariadb import USER as MARIA_USER
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import PASSWORD, USER, Postgres
from tests.unit.documents.documents import pipeline

TABLES = """
CREATE SCHEMA sales; CREATE SCHEMA "pg";
CREATE TABLE orders (id int, tenant int, code text, PRIMARY KEY (tenant, id) INCLUDE (code));
CREATE TABLE two_keys (a int NOT NULL, b int NOT NULL, c int NOT NULL, d int UNIQUE);
CREATE UNIQUE INDEX z_one ON two_keys (c); CREATE UNIQUE INDEX y_two ON two_keys (a, b);
CREATE TABLE partial (a int NOT NULL, b text NOT NULL);
CREATE UNIQUE INDEX partial_some ON partial (a) WHERE a > 0;
CREATE UNIQUE INDEX partial_lower ON partial (lower(b));
CREATE TABLE keyless (a int);
CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE heirs (id int PRIMARY KEY); CREATE TABLE heir () INHERITS (heirs);
CREATE VIEW seen AS SELECT * FROM orders;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM orders;
CREATE TABLE sales."Line.Items" ("Id" int PRIMARY KEY, n int);
CREATE TABLE sales.audit_log (id int PRIMARY KEY);
"""


def _document(folder: Path, server: Postgres, database: str, tables: str) -> PipelineDocument:
    secret = folder / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    text = (
        "version: 1\nname: shop\n"
        "destination: {version: 1, bucket: my-data-lake, region: us-east-1}\n"
        f"source: {{type: JDBC, url: '{server.url(database)}', user: {USER}, "
        f"password: {{file: '{secret}'}}}}\ntables:\n{tables}\n"
    )
    return pipeline(folder, text)


def _found(document: PipelineDocument, *, keys: bool = True) -> dict[str, tuple[str, ...]]:
    found = table_specs(with_found_tables(document, "test", keys=keys))
    return {table.source: table.primary_key for table in found}


def test_globs_find_tables_and_tables_have_the_key_of_the_database(
    postgres: Postgres, tmp_path: Path
) -> None:
    name = postgres.new_database()
    with closing(postgres.connect(name)) as admin:
        admin.execute(TABLES.encode())

        def found(tables: str) -> dict[str, tuple[str, ...]]:
            return _found(_document(tmp_path, postgres, name, tables))

        assert found("- {table: 'public.*'}") == {
            "public.heirs": (),
            "public.keyless": (),
            "public.orders": ("tenant", "id"),
            "public.parted": ("id",),
            "public.partial": (),
            "public.two_keys": ("c",),
        }
        # An entry of its own wins, wherever it stands; `*.*` finds no tables of the system.
        several = (
            "- {table: '*.*', exclude: [public.p*, 'heir*', keyless, '*.audit_*'], where: a > 0}\n"
            "- {table: public.two_keys, primary_key: [a]}\n- {table: public.seen}\n"
        )
        assert found(several) == {
            "public.orders": ("tenant", "id"),
            'sales."Line.Items"': ("Id",),
            "public.two_keys": ("a",),
            "public.seen": (),
        }
        specs = table_specs(
            with_found_tables(_document(tmp_path, postgres, name, several), "test", keys=True)
        )
        assert [table.where for table in specs] == ["a > 0", "a > 0", None, None]
        inputs = [table.input for table in specs if isinstance(table.input, JdbcInput)]
        assert [read.key for read in inputs] == [("tenant", "id"), ("Id",), None, ()]

        # A key whose columns are not all loaded is none; the next one may be.
        assert found("- {table: public.two_keys, columns: {exclude: [C]}}") == {
            "public.two_keys": ("a", "b")
        }
        assert found("- {table: public.two_keys, columns: {include: [a]}}") == {
            "public.two_keys": ()
        }
        # The same key is the same job, whoever says it; `[]` says that there is none.
        marks = {
            text: table_specs(
                with_found_tables(
                    _document(tmp_path, postgres, name, f"- {{table: public.parted{text}}}"),
                    "test",
                    keys=True,
                )
            )[0].fingerprint
            for text in ("", ", primary_key: [id]", ", primary_key: []")
        }
        assert marks[""] == marks[", primary_key: [id]"] != marks[", primary_key: []"]

        admin.execute(b"CREATE TABLE added (id int)")
        assert "public.added" in found("- {table: public.*}")

        # Commands about tables that are loaded choose among those that are found.
        path = tmp_path / "pipeline.yaml"
        _, request = request_of("runs", NamedFiles(path), ["public.a*"], phases=no_phases())
        chosen = select_tables(specs_of(request.document)[1], request.globs)
        assert [table.target for table in chosen] == ["public.added"]


@pytest.mark.parametrize(
    ("tables", "message", "hint"),
    [
        ("- {table: publik.*}", "`publik.*` finds no table in the database", "`public`?"),
        ("- {table: public.ordr*}", "`public.ordr*` finds no table", "mean `public.orders`?"),
        ("- {table: SALES.orders*}", "`SALES.orders*` finds no table", "mean `sales`?"),
        ("- {table: '*.ordrs*'}", "`*.ordrs*` finds no table", "mean `sales.Orders`?"),
        ("- {table: public.se*}", "`public.se*` finds no table", "one by one"),
        ("- {table: 'public.o*', exclude: [orders]}", "finds no table", "`exclude` leaves"),
        (
            "- {table: public.orders*, namespace: one}\n- {table: sales.*, namespace: one}",
            "`public.orders` and `sales.Orders` would both be loaded into `one.Orders`",
            "`name`",
        ),
    ],
)
def test_what_globs_find_has_one_target_each(
    postgres: Postgres, tmp_path: Path, tables: str, message: str, hint: str
) -> None:
    name = postgres.new_database()
    with closing(postgres.connect(name)) as admin:
        admin.execute(
            b"CREATE SCHEMA sales; CREATE TABLE orders (id int); CREATE VIEW seen AS SELECT 1 AS a;"
            b'CREATE TABLE sales."Orders" (id int); CREATE TABLE sales.kept (id int)'
        )
    with pytest.raises(InvalidInput) as raised:
        _found(_document(tmp_path, postgres, name, tables))
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    if "both be loaded" not in message:
        return
    follows(__file__, "two tables of one target", raised.value.hint or "")
    for own in (
        "- {table: sales.Orders, name: own}",
        "- {table: sales.Orders, namespace: own}",
    ):
        added = f"{tables}\n{own}"
        assert len(_found(_document(tmp_path, postgres, name, added))) == 3
    without = tables.replace("sales.*,", "sales.*, exclude: [Orders],")
    assert len(_found(_document(tmp_path, postgres, name, without))) == 2


def test_upsert_needs_a_key_and_a_name_alone_needs_no_server(
    postgres: Postgres, tmp_path: Path
) -> None:
    name = postgres.new_database()
    with closing(postgres.connect(name)) as admin:
        admin.execute(b"CREATE TABLE keyed (id int PRIMARY KEY); CREATE TABLE keyless (a int)")
    document = _document(tmp_path, postgres, name, "- {table: public.*}")
    text = document.path.read_text(encoding="utf-8")
    iceberg = text.replace("us-east-1", "us-east-1, table_format: ICEBERG, glue_database_prefix: x")
    upsert = pipeline(tmp_path, iceberg.replace("public.*", "public.*, mode: UPSERT"))

    with pytest.raises(
        InvalidInput, match=r"the database has none for `public\.keyless`"
    ) as failed:
        _found(upsert)
    follows(__file__, "a table without a key", failed.value.hint or "")
    text_of = upsert.path.read_text(encoding="utf-8")
    for entry in ("primary_key: [a], mode: UPSERT", "mode: APPEND"):
        own = pipeline(tmp_path, f"{text_of}- {{table: public.keyless, {entry}}}\n")
        assert _found(own)["public.keyless"] == (("a",) if "primary_key" in entry else ())

    late = text.replace("public.*", "public.*, cursor: a, lookback: 5, exclude: [keyed]")
    with pytest.raises(
        InvalidInput, match=r"`lookback` needs a key, and .*`public\.keyless`"
    ) as failed:
        _found(pipeline(tmp_path, late))
    follows(__file__, "late rows of a table without a key", failed.value.hint or "")
    for change in (", lookback: 5, ", ", "), ("lookback: 5", "lookback: 5, primary_key: [a]"):
        assert _found(pipeline(tmp_path, late.replace(*change)))

    away = pipeline(tmp_path, text.replace(str(postgres.port), "1").replace("public.*", "public.a"))
    assert with_found_tables(away, "runs") is away
    with pytest.raises(Refused, match="connecting to PostgreSQL"):
        with_found_tables(away, "sync", keys=True)


def test_globs_find_tables_of_mariadb(mariadb: MariaDb, tmp_path: Path) -> None:
    name = mariadb.new_database()
    mariadb.run(
        "CREATE TABLE orders (id int, tenant int, PRIMARY KEY (tenant, id))",
        "CREATE TABLE wide (a varchar(50) NOT NULL, b int NOT NULL, c int NOT NULL, d int UNIQUE,"
        " UNIQUE KEY y_two (b, c), UNIQUE KEY z_one (c), UNIQUE KEY a_prefix (a(10)))",
        "CREATE TABLE keyless (a int)",
        "CREATE VIEW seen AS SELECT * FROM orders",
        database=name,
    )
    secret = tmp_path / "password"
    secret.write_text(MARIA_PASSWORD, encoding="utf-8")
    document = pipeline(
        tmp_path,
        "version: 1\nname: shop\n"
        "destination: {version: 1, bucket: my-data-lake, region: us-east-1}\n"
        f"source: {{type: JDBC, url: '{mariadb.url(name)}', user: {MARIA_USER}, "
        f"password: {{file: '{secret}'}}}}\n"
        f"tables: [{{table: '{name}.*'}}, {{table: {name}.seen}}]\n",
    )

    assert _found(document) == {
        f"{name}.keyless": (),
        f"{name}.orders": ("tenant", "id"),
        f"{name}.wide": ("c",),
        f"{name}.seen": (),
    }
