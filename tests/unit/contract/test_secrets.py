"""References to secrets of this machine that lead nowhere."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import ExitCode, InvalidInput
from lakeload_jobs.contract.secrets import SecretReference, resolve_locally, without_secrets


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


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("a token `a` of a table", ["a"], "**** token `****` of **** table"),
        ("the name `n` cannot be a=x1", ["x1", "", "n"], "the name `****` cannot be a=****"),
        ("id:id-secret and id-secrets", ["id", "id-secret"], "****:**** and ****s"),
        ("jdbc:x://u:p!@h", ["p!"], "jdbc:x://u:****@h"),
        ("no secret", [], "no secret"),
    ],
)
def test_a_short_secret_is_masked_where_it_is_a_word(
    text: str, secrets: list[str], shown: str
) -> None:
    assert without_secrets(text, secrets) == shown
