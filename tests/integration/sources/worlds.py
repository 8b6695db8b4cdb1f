"""One source of each type, with documents that read it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import pytest

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.spec import ReaderChoice, TableSpec
from tests.servers.postgres import PASSWORD, USER, Postgres

Rows = Sequence[tuple[int, str]]
"""Rows of a source: `id` and `name`."""
DESTINATION = {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"}


@dataclass
class World(ABC):
    """A source, empty at first, and the folder of the documents."""

    folder: Path
    goes_on: ClassVar[bool] = True
    """Whether a load of such a source may take what is new since the last one alone."""
    readers: ClassVar[Mapping[ReaderChoice, str | None]] = {}
    """Who reads it, by the choice of the reader; None where its files decide."""
    secret: ClassVar[str] = ""
    """What must be in no spec."""

    @classmethod
    def made(cls, folder: Path, request: pytest.FixtureRequest) -> Self:
        """Return an empty source; `request` starts the server that it needs."""
        return cls(folder)

    def table(self, *, goes_on: bool, missing: bool = False) -> TableSpec:
        """Return the table, loaded incrementally or as a whole; or one that is not there."""
        source, table = self.settings(goes_on=goes_on, missing=missing)
        document = {"version": 1, "name": "shop", "destination": DESTINATION, "source": source}
        path = self.folder / "pipeline.json"
        path.write_text(json.dumps({**document, "tables": [table]}))
        (found,) = table_specs(load_pipeline(path, {}))
        return found

    @abstractmethod
    def settings(self, *, goes_on: bool, missing: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what stands under `source`, and the entry of the table."""

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Add rows."""


class FilesWorld(World):
    """CSV files, one for each time that rows are added."""

    readers = dict.fromkeys(get_args(ReaderChoice))

    def settings(self, *, goes_on: bool, missing: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a folder."""
        (self.folder / "in").mkdir(exist_ok=True)
        options = {"header": True}
        source = {"type": "FILES", "format": "CSV", "options": options, "incremental": goes_on}
        return source, {"table": "orders", "path": "nowhere/" if missing else "in/"}

    def add(self, rows: Rows) -> None:
        """Write one more file."""
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        lines = ["id,name", *(f"{number},{name}" for number, name in rows)]
        (folder / f"{len(list(folder.iterdir()))}.csv").write_text("\n".join(lines) + "\n")


class SparkWorld(FilesWorld):
    """The same files, read by Spark."""

    goes_on = False
    readers = dict.fromkeys(get_args(ReaderChoice), "jvm")

    def settings(self, *, goes_on: bool, missing: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a folder."""
        _, table = super().settings(goes_on=goes_on, missing=missing)
        options = {"header": True, "inferSchema": True}
        return {"type": "SPARK", "format": "csv", "options": options}, table


@dataclass
class DatabaseWorld(World):
    """A table of PostgreSQL."""

    server: Postgres
    readers: ClassVar[Mapping[ReaderChoice, str | None]] = {
        "AUTO": "direct",
        "DIRECT": "direct",
        "JVM": "jvm",
    }
    secret = PASSWORD

    @classmethod
    def made(cls, folder: Path, request: pytest.FixtureRequest) -> Self:
        """Return an empty table of the server that tests share."""
        return cls(folder, request.getfixturevalue("postgres"))

    def __post_init__(self) -> None:
        """Make an empty table."""
        self.database = self.server.new_database()
        (self.folder / "password.txt").write_text(PASSWORD)
        self._run("CREATE TABLE orders (id int PRIMARY KEY, name text)")

    def settings(self, *, goes_on: bool, missing: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the table, with its key as the cursor where loads go on."""
        url = f"postgresql://127.0.0.1:{self.server.port}/{self.database}"
        login = {"user": USER, "password": {"file": "password.txt"}}
        table = {"table": "public.nowhere" if missing else "public.orders", "primary_key": ["id"]}
        cursor = {"cursor": "id"} if goes_on else {}
        return {"type": "JDBC", "url": url, **login}, {**table, **cursor}

    def add(self, rows: Rows) -> None:
        """Insert them."""
        values = ", ".join(f"({number}, '{name}')" for number, name in rows)
        self._run(f"INSERT INTO orders VALUES {values}")

    def _run(self, statement: str) -> None:
        with self.server.connect(self.database) as admin:
            admin.execute(statement.encode())
