"""Findings about a JDBC source that no single setting can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from lakeload.config.model import Finding
from lakeload.config.secret_names import shown
from lakeload.sources.databases.settings import JdbcSettings, JdbcTable, no_table
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.databases.url import DatabaseUrl, parse_url
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.databases.engines.base import XMIN, Facts
from lakeload_jobs.sources.databases.engines.registry import BY_SCHEME

_VERIFIED = ("verify-ca", "verify-full")
"""Modes of `sslmode` in which the server proves who it is."""


def findings(source: Any, tables: Sequence[tuple[int, JdbcTable]]) -> Iterator[Finding]:
    """Yield what is contradictory or missing, or what the engine does not have."""
    try:
        settings = JdbcSettings.model_validate(source)
    except ValidationError:
        return
    url = parse_url(settings.url)
    facts = url.engine.facts
    yield from _glob_findings(tables)
    if not facts.users_driver:
        yield from _own_driver_findings(settings)
    if facts.schemes:
        yield from _user_findings(settings, url)
        for i, table in tables:
            if table.query is None and len(name_parts(table.table)) != 2:
                yield no_table(table.table, ("tables", i, "table"))
    if facts.by_driver:
        yield from _driver_findings(settings, url, tables)
        return
    yield from _consistency_findings(settings, facts)
    for i, table in tables:
        if not facts.has_xmin and not table.cursor_is_column:
            yield Finding(
                f"`cursor: {XMIN}` is the transaction id of PostgreSQL's rows",
                "set `cursor` to a column of the table",
                ("tables", i, "cursor"),
            )
    iam = settings.iam_authentication
    if iam and settings.password is not None:
        yield Finding(
            "`password` and `iam_authentication` are two ways to log in",
            "remove one of the two",
            ("source", "password"),
            "contradiction",
        )
    if iam and url.parameters.get("sslmode") not in _VERIFIED:
        yield Finding(
            "`iam_authentication` needs TLS: the token is sent as it is",
            "add `sslmode=verify-full` and `sslrootcert` to `url`",
            ("source", "url"),
            "contradiction",
        )


def _consistency_findings(settings: JdbcSettings, facts: Facts) -> Iterator[Finding]:
    """Yield a `consistency` that the engine does not have, or that needs more connections."""
    consistency = settings.consistency
    if missing := facts.no_consistency.get(consistency):
        at = ("source", "consistency")
        yield Finding(missing.message, missing.hint, at, "contradiction")
    needs = facts.consistencies.get(consistency)
    if needs is not None and settings.max_connections < needs.connections:
        yield Finding(
            f"`consistency: {consistency}` needs {needs.connections} connections: {needs.roles}",
            f"set `max_connections: {needs.connections}` or more",
            ("source", "max_connections"),
            "contradiction",
        )


def _user_findings(settings: JdbcSettings, url: DatabaseUrl) -> Iterator[Finding]:
    """Yield a user that is missing, or given twice."""
    needed = url.engine.facts.needs_login or settings.iam_authentication
    if needed and not (settings.user or url.user):
        yield Finding(
            "`user` is missing", "write `user: NAME` below `source`", ("source",), "missing-key"
        )
    if settings.user and url.user and settings.user != url.user:
        yield Finding(
            f"`user` is `{shown(settings.user)}`, and the URL names `{shown(url.user)}`",
            "remove one of the two",
            ("source", "user"),
            "contradiction",
        )


def _own_driver_findings(settings: JdbcSettings) -> Iterator[Finding]:
    """Yield a driver where lakeload has one."""
    for name in ("jar", "driver"):
        if getattr(settings, name) is not None:
            message = f"`{name}` is not needed: lakeload has the driver of this database"
            yield Finding(message, "remove it", ("source", name), "contradiction")


def _driver_findings(
    settings: JdbcSettings, url: DatabaseUrl, tables: Sequence[tuple[int, Any]]
) -> Iterator[Finding]:
    """Yield what a database that is read with a JDBC driver lacks or needs."""
    facts = url.engine.facts
    what = f"for {facts.title}"
    if settings.jar is None and facts.users_driver:
        name = settings.url.removeprefix("jdbc:").split(":")[0]
        yield Finding(
            f"`jar` is missing: lakeload has no driver of `{shown(name)}`",
            did_you_mean(name, BY_SCHEME) or "write `jar: PATH` of the JDBC driver",
            ("source",),
            "missing-key",
        )
    given = {
        "consistency": settings.consistency != "TABLE",
        "iam_authentication": settings.iam_authentication,
        "lock_timeout": not facts.has_lock_timeout and "lock_timeout" in settings.model_fields_set,
    }
    for name in (name for name, is_given in given.items() if is_given):
        message = f"`{name}` is not possible {what}"
        yield Finding(message, "remove it", ("source", name), "contradiction")
    for i, table in tables:
        lacking = {
            "table": table.is_glob,
            "cursor": not table.cursor_is_column,
            "lookback": table.lookback is not None,
            "detect_deletes": table.detect_deletes,
        }
        texts = {"table": "a glob in `table`", "cursor": f"`cursor: {XMIN}`"}
        for name in (name for name, is_given in lacking.items() if is_given):
            message = f"{texts.get(name, f'`{name}`')} is not possible {what}"
            hint = "write one entry for each table" if name == "table" else "remove it"
            yield Finding(message, hint, ("tables", i, name), "contradiction")
        if (reason := table.key_needed_by(table.mode)) and not table.primary_key:
            yield Finding(
                f"`{reason}` needs `primary_key`, which is not looked up {what}",
                "write `primary_key: [COLUMN]`",
                ("tables", i),
                "missing-key",
            )


def _glob_findings(tables: Sequence[tuple[int, Any]]) -> Iterator[Finding]:
    """Yield settings that only one table can have, and those that only a glob can."""
    for i, table in tables:
        if table.is_glob and table.name is not None:
            yield Finding(
                f"`name` would be the target of all tables that `{shown(table.table)}` finds",
                "remove it, or give it to an entry of its own for one table",
                ("tables", i, "name"),
                "contradiction",
            )
        if table.exclude and not table.is_glob:
            yield Finding(
                "`exclude` has no effect, because `table` is no glob",
                "remove it, or write a glob such as `public.*`",
                ("tables", i, "exclude"),
                "contradiction",
            )
