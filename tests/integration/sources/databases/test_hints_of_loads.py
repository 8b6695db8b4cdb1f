"""Hints about loads from databases, followed literally: the changed pipeline loads the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.sources.databases import seen
from lakeload_jobs.sources.databases.engines.postgres import xids as xids
from tests.hints import follow, follows
from tests.integration.formats.followed import Settings, Shop, clause_of
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.test_followed_hints import iceberg, parquet
from tests.integration.jobs.conftest import Job
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.integration.sources.databases.test_jdbc_url import H2, h2
from tests.integration.sources.databases.test_jdbc_url import PASSWORD as H2_PASSWORD
from tests.servers.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.servers.mariadb import USER as MARIADB_USER
from tests.servers.postgres import PASSWORD, USER

__all__ = ["h2"]

FULL_REFRESH = "with `lakeload sync --full-refresh` under `mode: UPSERT`"
RESET = "after `lakeload reset` under `mode: APPEND`"


@dataclass(frozen=True)
class Case:
    """A table that is refused, and the clause of its hint that lets its rows be loaded; several are
    those of hints that follow each other.

    `given` creates it; `{t}` is its name. With the settings `first` it is loaded before `between`
    changes it; with `then` it is refused. `values` fill in what the clause leaves open; what it
    says in words, `by_hand` does.
    """

    clause: str | tuple[str, ...]
    given: str
    then: Settings = field(default_factory=dict)
    first: Settings | None = None
    between: str = ""
    values: Settings = field(default_factory=dict)
    by_hand: Callable[[Settings], object] | None = None
    rows: int = 1

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses in their order."""
        return (self.clause,) if isinstance(self.clause, str) else self.clause


def follow_tables(
    file: str, shop: Shop, cases: Mapping[str, Case], run: Callable[[str], object], prefix: str
) -> None:
    """Load the tables of all cases: as they are refused, and then as the hints say.

    A job does it for all cases, each of which has a table of its own. `file` is the test, for the
    list; `run` executes SQL; names of tables begin with `prefix`.
    """
    names = {name: f"{prefix}{number}" for number, name in enumerate(cases)}

    def table(name: str, settings: Settings) -> Settings:
        return {"table": names[name], **settings}

    def execute(name: str, statements: str) -> None:
        for statement in filter(None, statements.split("; ")):
            run(statement.replace("{t}", names[name].rpartition(".")[2]))

    for name, case in cases.items():
        execute(name, case.given)
    before = [table(name, case.first) for name, case in cases.items() if case.first is not None]
    for result in (shop.load(before) if before else {}).values():
        assert result.error is None, (result.table, result.error)
    for name, case in cases.items():
        execute(name, case.between)
    tables = {name: table(name, case.then) for name, case in cases.items()}
    results = shop.load(list(tables.values()))
    wrong: dict[str, object] = {}
    for step in range(max(len(case.clauses) for case in cases.values())):
        loads: dict[str, list[Settings]] = {"": [], FULL_REFRESH: [], RESET: []}
        for name, case in cases.items():
            if name in wrong or step >= len(case.clauses):
                continue
            result = results[tables[name]["table"]]
            hint = (result.error and result.error.hint) or ""
            clause = clause_of(case.clauses[step], hint)
            if result.error is None or clause is None:
                wrong[name] = result.error or result
                continue
            if not step:
                follows(file, name, hint)
            tables[name] = _changed(shop, tables[name], case, clause)
            loads[clause if clause in loads else ""].append(tables[name])
        if loads[RESET]:
            shop.reset(loads[RESET])
        if appended := loads[""] + loads[RESET]:
            results |= shop.load(appended)
        if loads[FULL_REFRESH]:
            results |= shop.load(loads[FULL_REFRESH], full_refresh=True)
    for name in cases.keys() - wrong.keys():
        result = results[tables[name]["table"]]
        if result.error or result.rows != cases[name].rows:
            wrong[name] = result.error or f"{result.rows} rows"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


def _changed(shop: Shop, table: Settings, case: Case, clause: str) -> Settings:
    if case.by_hand is not None:
        changed = {**table}
        case.by_hand(changed)
        return changed
    followed = follow(shop.document([table]), clause, "tables[0].table", **case.values)
    assert {**followed, "tables": None} == {**shop.document([]), "tables": None}
    [changed] = followed["tables"]
    return dict(changed)


ORDERS = (
    'CREATE TABLE {t} (id int NOT NULL, "yes: no" int NOT NULL, at timestamp NOT NULL); '
    "INSERT INTO {t} VALUES (1, 1, '2024-02-29 12:00')"
)
MORE = "INSERT INTO {t} VALUES (2, 2, '2024-02-29 12:01')"
EQUAL = f"{ORDERS}; INSERT INTO {{t}} SELECT n, 1, '2024-02-29 12:00' FROM generate_series(2, 4) n"
VIEW = ORDERS.replace("{t}", "of_{t}") + "; CREATE VIEW {t} AS SELECT * FROM of_{t}"
BY_ID = {"cursor": "id", "primary_key": ["id"]}
POSTGRES = {
    "a date without end": Case(
        "set `on_bad_value: 'NULL'`", "CREATE TABLE {t} AS SELECT 1 AS id, 'infinity'::date AS day"
    ),
    "another cursor": Case("set `cursor: ", ORDERS, {"cursor": "id"}, {"cursor": "yes: no"}, MORE),
    "transaction ids, after a column": Case(
        "set `cursor: ", ORDERS, {"cursor": "xmin"}, {"cursor": "yes: no"}, MORE
    ),
    "a column, after transaction ids": Case(
        "set `cursor: ", ORDERS, {"cursor": "id"}, {"cursor": "xmin"}, MORE
    ),
    "transaction ids of a view": Case(
        "set `cursor` to a column", VIEW, {"cursor": "xmin"}, values={"cursor": "id"}
    ),
    "transaction ids of a view, by its table": Case(
        "load the tables that the view reads", VIEW, {"cursor": "xmin"},
        by_hand=lambda table: table.update(table=table["table"].replace(".", ".of_")),
    ),
    "many rows of one cursor": Case(
        "choose a `cursor` with more different values", EQUAL, {"cursor": "at"},
        values={"cursor": "id"}, rows=4,
    ),
    "a long window of late rows": Case(
        "set a shorter `lookback`", EQUAL, {**BY_ID, "lookback": "10"},
        values={"lookback": "1"}, rows=4,
    ),
}  # fmt: skip
UPSERT = {**BY_ID, "mode": "UPSERT"}
APPEND = {**BY_ID, "mode": "APPEND"}
AT = {**APPEND, "cursor": "at"}
TYPE = "ALTER TABLE {t} ALTER id TYPE text"
POSTGRES_ICEBERG = {
    "another type of the cursor": Case(FULL_REFRESH, ORDERS, UPSERT, UPSERT, TYPE),
    "another type of the cursor, from the start": Case(RESET, ORDERS, APPEND, APPEND, TYPE),
    "rows of an upsert that are appended": Case(
        "set `mode: UPSERT`", ORDERS, APPEND, UPSERT, MORE, rows=2
    ),
    "many rows of the last cursor": Case(
        ("choose a `cursor` with more different values", RESET), ORDERS, AT, AT,
        f"{MORE}; INSERT INTO {{t}} SELECT n, 1, '2024-02-29 12:00' FROM generate_series(3, 4) n",
        values={"cursor": "id"}, rows=4,
    ),
    "many rows of one cursor, which are not remembered": Case(
        "set `mode: UPSERT`", EQUAL, AT, rows=4
    ),
}  # fmt: skip
XMIN = {"cursor": "xmin", "primary_key": ["id"]}
OPEN = {
    "transactions that a load has not noted": Case(
        "set `mode: UPSERT` again", ORDERS, {**XMIN, "mode": "APPEND"}, {**XMIN, "mode": "UPSERT"},
        MORE, rows=2,
    ),
    "transactions that a load has not noted, with all rows": Case(
        FULL_REFRESH, ORDERS, {**XMIN, "mode": "APPEND"}, {**XMIN, "mode": "UPSERT"}, MORE, rows=2
    ),
}  # fmt: skip
EPOCH = {
    "transaction ids that come again": Case(
        "set `mode: UPSERT`", ORDERS, {**XMIN, "mode": "APPEND"}
    ),
    "transaction ids that come again, without them": Case(
        "choose a column as `cursor`", ORDERS, {**XMIN, "mode": "APPEND"},
        by_hand=lambda table: table.update(cursor="id"),
    ),
}  # fmt: skip


def test_hints_about_postgresql_are_followed_and_load(
    job: Job, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "MOST_ROWS", 2)
    shop = _postgres(parquet(job), database)
    follow_tables(__file__, shop, POSTGRES, database.run, "public.t")


def test_hints_about_modes_of_postgresql_are_followed_and_load(
    loads: Loads, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "MOST_ROWS", 2)
    shop = _postgres(iceberg(loads), database)
    follow_tables(__file__, shop, POSTGRES_ICEBERG, database.run, "public.t")


def test_hints_about_transaction_ids_are_followed_and_load(
    loads: Loads, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = _postgres(iceberg(loads), database)
    with closing(database.session()) as other, monkeypatch.context() as patch:
        # While a transaction is open, loads note the later ones: here too many for the first load.
        other.execute("BEGIN; CREATE TABLE other (id int)")
        patch.setattr(xids, "MOST_XIDS", 0)

        def run(statement: str) -> None:
            if "VALUES (2" in statement:
                other.execute("COMMIT")
                patch.undo()
            database.run(statement)

        follow_tables(__file__, shop, OPEN, run, "public.t")
    parse = xids.parse_snapshot

    def of_a_later_epoch(text: str, server: str = "") -> xids.XidSnapshot:
        now = parse(text, server)
        return xids.XidSnapshot(now.horizon + xids.EPOCH, now.end + xids.EPOCH, server)

    monkeypatch.setattr(xids, "parse_snapshot", of_a_later_epoch)
    follow_tables(__file__, shop, EPOCH, database.run, "public.later")


def test_a_database_in_the_place_of_files_is_loaded_as_the_hints_say(
    job: Job, database: Database
) -> None:
    shop = parquet(job)
    folder = shop.write("new/orders.parquet", [{"id": 7}]).parent
    new_files = {**shop.settings["source"], "incremental": True}
    exported = {"table": "public.orders", "name": "orders", "path": f"{folder}/*.parquet"}
    [files] = shop.load([exported], source=new_files).values()
    assert files.error is None, files.error
    database.run("CREATE TABLE orders (id bigint NOT NULL)")
    database.run("INSERT INTO orders VALUES (1)")
    _postgres(shop, database)

    def load(cursor: str, **settings: Any) -> TableResult:
        orders = {"table": "public.orders", "cursor": cursor, "mode": "APPEND"}
        return shop.load([orders], **settings)["public.orders"]

    for cursor in ("xmin", "id"):
        error = load(cursor).error
        assert error is not None
        assert "give this pipeline another `name`" in (error.hint or "")
        follows(__file__, "the state of files", error.hint or "")
    error = load("id", name="other").error
    assert error is not None
    assert clause_of("set `table_handling: APPEND`", error.hint or ""), error

    loaded = load("id", name="other", table_handling="APPEND")

    assert (loaded.error, loaded.rows) == (None, 1)


MARIADB = {
    "a date of zeros": Case(
        "set `on_bad_value: 'NULL'`",
        "CREATE TABLE {t} (id int, day date); INSERT INTO {t} VALUES (1, '0000-00-00')",
    ),
}  # fmt: skip


def test_hints_about_mariadb_are_followed_and_load(job: Job, maria: MariaDatabase) -> None:
    shop, given = parquet(job), maria.input
    url = f"mysql://{given.host}:{given.port}/{given.name}"
    shop.settings["source"] = _source(shop, url, MARIADB_USER, MARIADB_PASSWORD)
    follow_tables(__file__, shop, MARIADB, maria.run, f"{given.name}.t")


LISTS = "CREATE TABLE {t} (id int, list int array); INSERT INTO {t} VALUES (1, ARRAY[1])"


def _cast(table: Settings) -> None:
    table["query"] = f"SELECT id, CAST(list AS varchar) AS list FROM {table['table']}"
    table["table"] = "lists"


DRIVER = {
    "a date that Java moves": Case(
        "set `on_bad_value: 'NULL'`",
        "CREATE TABLE {t} (id int, born date); INSERT INTO {t} VALUES (1, '0001-01-01')",
    ),
    "a column of lists": Case(
        "leave the column out with `columns.exclude`", LISTS,
        by_hand=lambda table: table.update(columns={"exclude": ["LIST"]}),
    ),
    "a column of lists, cast": Case("cast it in a `query`", LISTS, by_hand=_cast),
}  # fmt: skip


def test_hints_about_a_jdbc_driver_are_followed_and_load(job: Job, h2: H2) -> None:
    shop, given = parquet(job), h2.input
    source = _source(shop, given.url or "", "sa", H2_PASSWORD)
    shop.settings["source"] = {**source, "jar": list(given.jars)}
    follow_tables(__file__, shop, DRIVER, h2.run, "PUBLIC.T")


def _postgres(shop: Shop, database: Database) -> Shop:
    given = database.input
    url = f"postgresql://{given.host}:{given.port}/{given.name}"
    shop.settings["source"] = _source(shop, url, USER, PASSWORD)
    return shop


def _source(shop: Shop, url: str, user: str, password: str) -> Settings:
    secret = shop.folder / "login"
    secret.write_text(password, encoding="utf-8")
    return {"type": "JDBC", "url": url, "user": user, "password": {"file": str(secret)}}
