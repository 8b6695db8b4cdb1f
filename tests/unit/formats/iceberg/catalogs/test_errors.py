"""What a catalog's own sentence, as Spark repeats it, is answered with."""

from __future__ import annotations

import pytest

from lakeload_jobs.formats.iceberg.catalogs.errors import advice, name_advice

DENIED = (
    "ForbiddenException: Forbidden: Principal 'loader' with activated PrincipalRoles '[r]' and "
    "activated grants via '[r]' is not authorized for op "
)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (f"{DENIED}UPDATE_TABLE", "grant TABLE_WRITE_PROPERTIES (or CATALOG_MANAGE_CONTENT)"),
        (
            f"{DENIED}CREATE_TABLE_DIRECT_WITH_WRITE_DELEGATION",
            "grant TABLE_CREATE and TABLE_WRITE_DATA",
        ),
        ("The bucket is in a different region than the catalog", "or Glue as the catalog"),
        ("Credential vending was requested for table a.b, but no", "`access_delegation: NONE`"),
    ],
)
def test_known_catalog_message_gets_a_hint(said: str, wanted: str) -> None:
    assert wanted in advice(said)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("last error: table name must start with a letter or digit", "set `name` of the table"),
        ("namespace name must start with a letter or digit", "set `namespace` in the pipeline"),
        ("invalid table name: only 'a-z', '0-9', '_', and '-' are", "set `name` of the table"),
        ("invalid namespace name: only 'a-z', '0-9'", "set `namespace` in the pipeline"),
        ("the table is locked", None),
    ],
)
def test_refused_name_gets_the_setting(said: str, wanted: str | None) -> None:
    assert (name_advice(said) or "").startswith(wanted or "")
    assert (name_advice(said) is None) == (wanted is None)


def test_unknown_catalog_message_gets_no_hint() -> None:
    assert advice(f"{DENIED}SOMETHING_NEW") == ""
    assert advice("ForbiddenException: no") == ""
