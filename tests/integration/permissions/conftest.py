"""One world for each shape, made when its first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.permissions.shapes import SHAPES
from tests.integration.permissions.world import World
from tests.servers.ministack import AwsServer


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest,
    exact_aws: AwsServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """The world of the shape that the test is parametrized with."""
    folder: Path = tmp_path_factory.mktemp("secrets")
    made = World.make(SHAPES[request.param], exact_aws, folder)
    yield made
    made.close()
