"""A Python script that reads the Iceberg tables of a destination with pyiceberg. Pure.

https://py.iceberg.apache.org/configuration/ and …/api/, for pyiceberg 0.12.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from lakeload.policy.engines.iceberg_words import LAKE
from lakeload.policy.engines.lake_files import (
    METADATA_LOCATION,
    aws_identity,
    login_variables,
    needs_aws,
    path_style,
)
from lakeload.policy.text.secret_variables import catalog_variables, credential, headers, token
from lakeload.policy.text.snippets import Snippet
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.rules.catalog_uris import rest_uri, rest_warehouse, token_uri
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, SUMMARY_ROWS

_ANCESTORS = "from pyiceberg.table.snapshots import ancestors_of"
_DELEGATION = "header.X-Iceberg-Access-Delegation"


def pyiceberg_access(destination: DestinationSpec, *, tables: bool) -> Snippet:
    """Return the lines that open the catalog as `catalog`, and what queries of `tables` import.

    Nessie's own interface has no client in Python: nothing is opened there, and tables are read
    by their metadata file.
    """
    catalog = destination.iceberg.catalog
    if by_file(catalog):
        return Snippet(
            "no catalog",
            f"from pyiceberg.table import StaticTable\n{_ANCESTORS}",
            "pyiceberg has no client for Nessie's own interface. Each table is read as its current "
            f"metadata file says, which {METADATA_LOCATION}\n{_INSTALL}",
            "python",
        )
    lines = [f"        {_text(key)}: {value}," for key, value in _settings(destination).items()]
    opened = [
        "catalog = load_catalog(",
        f"    {_text(LAKE)},",
        "    **{",
        *lines,
        "    },",
        ")",
    ]
    variables = catalog_variables(catalog, destination.region)
    start = ["import os", ""] if variables else []
    imports = [_ANCESTORS] if tables else []
    return Snippet(
        "the catalog",
        "\n".join([*start, "from pyiceberg.catalog import load_catalog", *imports, "", *opened]),
        _why(destination, [one.name for one in variables]),
        "python",
        (*(one.reading for one in variables if one.reading), *_keys(destination)),
    )


def pyiceberg_queries(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], then: datetime
) -> tuple[Snippet, ...]:
    """Return the lines that read one table, one of its jobs, and its past."""
    branch = destination.iceberg.branch
    of_branch = "" if branch == "main" else f".use_ref({_text(branch)})"
    opened = f"table = catalog.load_table(({_text(table.schema)}, {_text(table.table)}))"
    if by_file(destination.iceberg.catalog):
        opened = _by_file(destination)
    found = [
        Snippet(
            f"{table.target}: its rows",
            f"{opened}\nprint(table.scan(){of_branch}.to_arrow())",
            "All of them, as an Arrow table; `limit=10` and `selected_fields=(…)` read less.",
            "python",
        )
    ]
    if "_supa_job_id" in tracking and table.mode != "OVERWRITE":
        job = "table.scan(row_filter=\"_supa_job_id = '<JOB_ID>'\")"
        found.append(
            Snippet(
                f"{table.target}: the rows of one job",
                f"print({job}{of_branch}.to_arrow())",
                "`lakeload runs` lists the ids.",
                "python",
            )
        )
    return (*found, _snapshots(table, branch), *_past(table, then, branch))


def by_file(catalog: CatalogSpec) -> bool:
    """Tell whether there is no catalog that Python could ask."""
    return catalog.type == "NESSIE" and catalog.api == "NATIVE"


def _by_file(destination: DestinationSpec) -> str:
    lines = [f"        {_text(key)}: {_text(value)}," for key, value in _files(destination).items()]
    start = 'table = StaticTable.from_metadata(\n    "<METADATA_LOCATION>",\n    {'
    return "\n".join([start, *lines, "    },", ")"])


_INSTALL = 'Install it with `pip install "pyiceberg[glue,pyarrow]"`.'


def _settings(destination: DestinationSpec) -> dict[str, str]:
    """Return the properties as Python writes them: a text, or where to find the secret."""
    catalog = destination.iceberg.catalog
    if catalog.type == "GLUE":
        plain = {"type": "glue", "glue.region": destination.region}
        if catalog.glue_id:
            plain["glue.id"] = catalog.glue_id
        if destination.endpoints.glue:
            plain["glue.endpoint"] = destination.endpoints.glue
        return {key: _text(value) for key, value in {**plain, **_files(destination)}.items()}
    plain, secret = _rest(destination)
    plain |= _files(destination)
    return {
        **{key: _text(value) for key, value in plain.items()},
        **{key: f"os.environ[{_text(variable)}]" for key, variable in secret.items()},
    }


def _rest(destination: DestinationSpec) -> tuple[dict[str, str], dict[str, str]]:
    """Return plain properties, and those whose value is in a variable of this name."""
    catalog, region = destination.iceberg.catalog, destination.region
    plain, secret = {"type": "rest", "uri": rest_uri(catalog)}, {}
    if asked := rest_warehouse(destination):
        plain["warehouse"] = asked
    if catalog.sigv4 is not None:
        plain["rest.sigv4-enabled"] = "true"
        plain["rest.signing-name"] = catalog.sigv4.signing_name
        plain["rest.signing-region"] = catalog.sigv4.region or region
    elif client := credential(catalog, region):
        plain["oauth2-server-uri"] = token_uri(catalog)
        if catalog.scope:
            plain["scope"] = catalog.scope
        secret["credential"] = client.name
    elif bearer := token(catalog, region):
        secret["token"] = bearer.name
        plain["oauth2-server-uri"] = token_uri(catalog)
    for header, variable in headers(catalog, region).items():
        secret[f"header.{header}"] = variable.name
    if not vends(catalog):
        # pyiceberg asks for vended credentials unless the header is there already.
        plain[_DELEGATION] = ""
    return plain, secret


def _files(destination: DestinationSpec) -> dict[str, str]:
    found = {"s3.region": destination.region}
    if vends(destination.iceberg.catalog):
        return found
    if destination.endpoints.s3:
        found["s3.endpoint"] = destination.endpoints.s3
        if not path_style(destination):
            found["s3.force-virtual-addressing"] = "true"
    return found


def _snapshots(table: TableSpec, branch: str) -> Snippet:
    head = "current_snapshot()" if branch == "main" else f"snapshot_by_name({_text(branch)})"
    return Snippet(
        f"{table.target}: its snapshots, and the jobs that made them",
        f"for snapshot in ancestors_of(table.{head}, table.metadata):\n"
        "    summary = snapshot.summary.additional_properties if snapshot.summary else {}\n"
        f"    job, rows = summary.get({_text(SUMMARY_JOB)}), summary.get({_text(SUMMARY_ROWS)})\n"
        "    print(snapshot.snapshot_id, snapshot.timestamp_ms, job, rows)",
        "Each load is one snapshot, for as long as snapshots are kept. Those without a job are not "
        "of lakeload's loads: maintenance, another writer, or the empty start of the table.",
        "python",
    )


def _past(table: TableSpec, then: datetime, branch: str) -> list[Snippet]:
    found = []
    if branch == "main":
        milliseconds = int(then.timestamp() * 1000)
        at = f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        found.append(
            Snippet(
                f"{table.target}: as it was at a time",
                f"then = table.snapshot_as_of_timestamp({milliseconds})  # {at}\n"
                "if then is not None:\n"
                "    print(table.scan(snapshot_id=then.snapshot_id).to_arrow())",
                "The time is in milliseconds since 1970. Before the first snapshot there is none.",
                "python",
            )
        )
    found.append(
        Snippet(
            f"{table.target}: as one snapshot left it",
            "for first in table.history()[:1]:\n"
            "    print(table.scan(snapshot_id=first.snapshot_id).to_arrow())",
            "The first of `main` that is kept; any `snapshot_id` of the list above will do.",
            "python",
        )
    )
    return found


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _keys(destination: DestinationSpec) -> tuple[str, ...]:
    """pyarrow knows no profile that assumes a role; the AWS command line turns one into keys."""
    return ('eval "$(aws configure export-credentials --format env)"',) * needs_aws(destination)


def _why(destination: DestinationSpec, variables: list[str]) -> str:
    told = [f"For pyiceberg 0.12. {_INSTALL}"]
    told += login_variables(variables, "{} must be in the environment.")
    if needs_aws(destination):
        told.append(aws_identity("of the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID, …)"))
    return "\n".join(told)
