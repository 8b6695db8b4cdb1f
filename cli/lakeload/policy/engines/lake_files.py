"""Where the files of Iceberg tables are and how readers reach them, in words of no engine. Pure."""

from __future__ import annotations

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import needs_aws_identity


def path_style(destination: DestinationSpec) -> bool:
    """Tell whether an S3 endpoint of one's own is spoken to in path style."""
    return destination.addressing_style != "VIRTUAL"


METADATA_LOCATION = (
    "`SELECT file FROM lake.SCHEMA.TABLE.metadata_log_entries ORDER BY timestamp DESC LIMIT 1` "
    "tells in Spark."
)
"""Where readers find a table that they can ask no catalog for."""


def needs_aws(destination: DestinationSpec) -> bool:
    """Tell whether readers need an identity of AWS: for the files, or to sign requests."""
    return needs_aws_identity(destination.iceberg.catalog)


def aws_identity(whose: str) -> str:
    """Return the sentence that says which identity that is; `whose` as in `of the servers`."""
    return (
        f"AWS is asked with the identity {whose}: one with the policies of "
        "`lakeload policy --read-only`."
    )


def login_variables(names: list[str], read: str) -> list[str]:
    """Return what to say of the variables that hold the catalog's secrets; `read` says by whom."""
    if not names:
        return []
    listed = ", ".join(f"`{name}`" for name in names)
    return [
        f"{read.format(listed)} Give readers a login of their own where this one may write.",
    ]
