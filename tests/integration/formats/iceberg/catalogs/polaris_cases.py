"""Ways to get Open Catalog or a plain REST catalog wrong, each with a cause of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.integration.formats.iceberg.catalogs.world import World
from tests.servers.oauth2_gate import Gate

READER = {"CREATE_TABLE_DIRECT", "CREATE_TABLE_DIRECT_WITH_WRITE_DELEGATION", "CREATE_NAMESPACE"}
"""What a principal for reading may not do."""


@dataclass(frozen=True)
class Case:
    """One misconfiguration: how to make it, and what must be said about it."""

    name: str
    bend: Callable[[World, Gate], object]
    probe: str
    code: str
    status: int | None
    says: str
    warning: bool = False


def _deny(*operations: str) -> Callable[[World, Gate], object]:
    return lambda world, gate: gate.deny(*operations)


def _second_role(world: World, gate: Gate) -> None:
    roles = {"loader_role": frozenset[str](), "viewer_role": frozenset(READER)}
    gate.principals["loader-id"] = replace(gate.principals["loader-id"], roles=roles)
    world.change(scope="PRINCIPAL_ROLE:viewer_role")


def _fixed_token(world: World, gate: Gate) -> None:
    token = world.secret("TOKEN", "4711-expired-yesterday")
    world.change(type="REST", client_id=None, client_secret=None, scope=None, token=token)


def _no_colon(world: World, gate: Gate) -> None:
    whole = world.secret("CREDENTIAL", "loader-id")
    world.change(type="REST", client_id=None, client_secret=None, credential=whole)


def _nobody(world: World, gate: Gate) -> None:
    world.change(type="REST", client_id=None, client_secret=None)


CASES = [
    Case(
        "secret that was rotated",
        lambda world, gate: world.secret("CLIENT_SECRET", "an-older-secret"),
        *("catalog-token", "unauthorized_client", 401, "the client secret was rotated"),
    ),
    Case(
        "client that does not exist",
        lambda world, gate: world.secret("CLIENT_ID", "nobody-id"),
        *("catalog-token", "unauthorized_client", 401, "the client id is misspelt"),
    ),
    Case(
        "scope of another kind of server",
        lambda world, gate: world.change(type="REST", scope="catalog"),
        *("catalog-token", "invalid_scope", 400, "PRINCIPAL_ROLE:ALL"),
    ),
    Case(
        "no scope at all",
        lambda world, gate: world.change(type="REST", scope=None),
        *("catalog-token", "invalid_scope", 400, "PRINCIPAL_ROLE:ALL"),
    ),
    Case(
        "role with fewer privileges",
        _second_role,
        *("catalog-create-namespace", "ForbiddenException", 403, "activates another role"),
    ),
    Case(
        "role that the principal does not have",
        lambda world, gate: world.change(scope="PRINCIPAL_ROLE:nosuch"),
        *("catalog-namespaces", "ForbiddenException", 403, "NAMESPACE_LIST"),
    ),
    Case(
        "catalog name that is misspelt",
        lambda world, gate: world.change(warehouse="Lake"),
        *("catalog-warehouse", "NotFoundException", 404, "`catalog_name` is misspelt"),
    ),
    Case(
        "no warehouse",
        lambda world, gate: world.change(type="REST", warehouse=None),
        *("catalog-warehouse", "BadRequestException", 400, "Please specify a warehouse"),
    ),
    Case(
        "path without /api/catalog",
        lambda world, gate: world.change(uri=gate.uri.removesuffix("/api/catalog")),
        *("catalog", "NotACatalog", 404, "/polaris/api/catalog"),
    ),
    Case(
        "nobody listens there",
        lambda world, gate: world.change(uri="http://127.0.0.1:9/api/catalog"),
        *("catalog", "EndpointConnectionError", None, "misspelt"),
    ),
    Case(
        "host that does not exist",
        lambda world, gate: world.change(uri="https://nosuch.invalid/api/catalog"),
        *("catalog", "EndpointConnectionError", None, "misspelt"),
    ),
    Case(
        "https where http is spoken",
        lambda world, gate: world.change(uri=gate.uri.replace("http:", "https:")),
        *("catalog", "SSLError", None, "the server uses http"),
    ),
    Case(
        "address that is no URL",
        lambda world, gate: world.change(uri="catalog.example.com/api"),
        *("catalog", "InvalidUrl", None, "write it as `https://"),
    ),
    Case(
        "token server at another path",
        lambda world, gate: world.change(oauth2_server_uri=f"{gate.uri}/oauth2/token"),
        *("catalog-token", "NotACatalog", 404, "requesting a token"),
    ),
    Case(
        "fixed token that has expired",
        _fixed_token,
        *("catalog-warehouse", "Unauthorized", 401, "cannot be renewed"),
    ),
    Case(
        "no identity where one is wanted",
        _nobody,
        *("catalog-warehouse", "Unauthorized", 401, "requires authentication"),
    ),
    Case(
        "credential without a colon",
        _no_colon,
        *("catalog-token", "InvalidInput", None, "`client-id:client-secret`"),
    ),
    Case(
        "secret that is not set",
        lambda world, gate: world.environment.delenv("CLIENT_SECRET"),
        *("catalog-token", "InvalidInput", None, "CLIENT_SECRET"),
    ),
    Case(
        "another region",
        lambda world, gate: world.change(catalog_region="eu-west-1"),
        *("catalog-region", "RegionMismatch", None, "bucket is in a different region"),
    ),
    Case(
        "catalog that cannot vend",
        lambda world, gate: setattr(gate, "vends", False),
        *("catalog-create-table", "IllegalArgumentException", 400, "`access_delegation: NONE`"),
    ),
    Case(
        "no right to list",
        _deny("LIST_NAMESPACES"),
        *("catalog-namespaces", "ForbiddenException", 403, "has NAMESPACE_LIST"),
    ),
    Case(
        "no right to make namespaces",
        _deny("CREATE_NAMESPACE"),
        *("catalog-create-namespace", "ForbiddenException", 403, "has NAMESPACE_CREATE"),
    ),
    Case(
        "no right to make tables with delegation",
        _deny("CREATE_TABLE_DIRECT_WITH_WRITE_DELEGATION"),
        *("catalog-create-table", "ForbiddenException", 403, "TABLE_CREATE and TABLE_WRITE_DATA"),
    ),
    Case(
        "no right to read tables",
        _deny("LOAD_TABLE_WITH_READ_DELEGATION"),
        *("catalog-load-table", "ForbiddenException", 403, "has TABLE_READ_DATA"),
    ),
    Case(
        "no right to commit",
        _deny("UPDATE_TABLE"),
        *("catalog-commit", "ForbiddenException", 403, "has TABLE_WRITE_PROPERTIES"),
    ),
    Case(
        "no right to drop tables",
        _deny("DROP_TABLE_WITHOUT_PURGE", "DROP_TABLE_WITH_PURGE"),
        *("catalog-drop-table", "ForbiddenException", 403, "has TABLE_DROP"),
        warning=True,
    ),
    Case(
        "no right to drop namespaces",
        _deny("DROP_NAMESPACE"),
        *("catalog-drop-namespace", "ForbiddenException", 403, "has NAMESPACE_DROP"),
        warning=True,
    ),
]
