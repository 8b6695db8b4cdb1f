"""What is said about refusals that the test's own servers do not give."""

from __future__ import annotations

import pytest

from lakeload.probes.iceberg import catalog_causes
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, SigV4Spec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError, missing_privilege

OPEN = CatalogSpec(
    type="SNOWFLAKE_OPEN_CATALOG",
    client_id=SecretReference("env", "ID"),
    client_secret=SecretReference("env", "SECRET"),
)


def refusal(status: int, said: str, code: str = "ForbiddenException") -> CatalogError:
    """Return an error as a catalog's answer makes it."""
    return CatalogError(f"creating: {said}", code=code, status=status, said=said)


@pytest.mark.parametrize(
    ("status", "said", "cause"),
    [
        (
            400,
            "Delegate access to table with user-specified write location is …",
            "remove the location",
        ),
        (400, "The bucket is in a different region", "Glue as the catalog"),
        (403, "Invalid locations '[s3://lake/x]' for identifier 'a.b'", "storage configuration"),
        (403, "Principal 'p' … is not authorized for op DROP_NAMESPACE", "NAMESPACE_DROP"),
        (503, "", "has an internal error"),
    ],
)
def test_open_catalog_error_leads_to_its_cause(status: int, said: str, cause: str) -> None:
    assert cause in catalog_causes(refusal(status, said), OPEN)[0]


def test_a_privilege_is_read_from_a_denial_alone() -> None:
    text = "is not authorized for op UPDATE_TABLE"
    assert missing_privilege(refusal(403, text)) == "TABLE_WRITE_PROPERTIES"
    assert missing_privilege(refusal(400, text)) == ""
    assert missing_privilege(refusal(403, "is not authorized for op TELEPORT")) == ""


def test_rejected_signature_leads_to_the_signing_name() -> None:
    signed = CatalogSpec(type="REST", sigv4=SigV4Spec())
    assert "`signing_name`" in catalog_causes(refusal(401, "", "Unauthorized"), signed)[0]


def test_an_unknown_branch_is_nessies_first_cause() -> None:
    nessie = CatalogSpec(type="NESSIE", ref="etl")
    causes = catalog_causes(refusal(404, "no such reference", "NotFoundException"), nessie)
    assert "the branch `etl`" in causes[0]
