"""References to secrets of this machine that lead nowhere."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import ExitCode, InvalidInput
from lakeload_jobs.contract.secrets import SecretReference, resolve_locally


@pytest.mark.parametrize(("value", "what"), [(None, "is not set"), ("", "is set and empty")])
def test_empty_secret_variable_is_reported_as_empty(
    value: str | None, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKE_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LAKE_KEY", value)

    with pytest.raises(InvalidInput, match=f"`LAKE_KEY` {what}") as caught:
        resolve_locally(SecretReference("env", "LAKE_KEY"))

    assert caught.value.exit_code == ExitCode.INVALID
