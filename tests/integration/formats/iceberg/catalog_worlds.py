"""A destination for each kind of catalog on a real server, by name.

Each world has a namespace of its own, since the servers outlive a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.glue_world import exact_lake, glue_world
from tests.integration.formats.iceberg.nessie_world import nessie_world
from tests.integration.formats.iceberg.rest_worlds import (
    open_catalog_world,
    rest_client_world,
    rest_token_world,
    seaweedfs_world,
    sigv4_world,
)

WORLDS = (
    *("glue", "open-catalog"),
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("nessie", "rest", "seaweedfs")),
)
"""Catalogs that a table lives its whole life in. The server of `rest` is that of `open-catalog`;
`seaweedfs` differs in its own responses only, and its S3 is that of all of them."""
VARIANTS = ("nessie", "seaweedfs", "rest", "rest-token", "sigv4")
"""Catalogs, and ways to log in to them, that are loaded into once."""


@contextmanager
def worlds(
    request: pytest.FixtureRequest, environment: pytest.MonkeyPatch
) -> Iterator[Callable[[str], CatalogWorld]]:
    """Yield a maker of worlds by name; servers start when the first of their worlds is made."""
    with ExitStack() as stack:

        def server(fixture: str) -> Any:
            return request.getfixturevalue(fixture)

        def made(name: str) -> CatalogWorld:
            if name == "glue":
                return glue_world(exact_lake(server("exact_aws"), environment))
            if name == "seaweedfs":
                return seaweedfs_world(server("seaweedfs"), environment)
            if name == "sigv4":
                return sigv4_world(server("seaweedfs"), environment)
            if name == "nessie":
                return stack.enter_context(nessie_world(server("nessie"), environment))
            gated = {
                "rest": rest_client_world,
                "rest-token": rest_token_world,
                "open-catalog": open_catalog_world,
            }[name]
            return stack.enter_context(
                gated(server("seaweedfs"), server("rest_backend"), environment)
            )

        yield made
