"""What is found out before Spark starts, and the exit code that it has."""

from __future__ import annotations

import pytest

from lakeload.connections import Connections
from lakeload.probes.connection import preflight
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec


@pytest.mark.parametrize("value", [None, ""])
def test_preflight_missing_secret_is_an_invalid_configuration(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKE_SECRET", raising=False)
    if value is not None:
        monkeypatch.setenv("LAKE_SECRET", value)
    monkeypatch.setenv("LAKE_KEY", "AKIAIOSFODNN7EXAMPLE")
    keys = CredentialsSpec(
        access_key_id=SecretReference("env", "LAKE_KEY"),
        secret_access_key=SecretReference("env", "LAKE_SECRET"),
    )

    with pytest.raises(InvalidInput, match="`LAKE_SECRET` is"):
        preflight(Connections(DestinationSpec("lake", "us-east-1", credentials=keys), "test"))
