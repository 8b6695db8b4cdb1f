"""dlt's filesystem destination with Iceberg tables, in a process and an environment of its own.

Arguments: append or merge, the input folder, `dataset.table`, the job id, then endpoint, region,
role and warehouse. The append makes the table. dlt names the catalog types `sql` and `rest` only;
what it does not find in its own settings it leaves to pyiceberg's, and those can say Glue.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from bench.peers.iceberg_rows import KEY, Place, latest, rows

UPSERT = {"disposition": "merge", "strategy": "upsert"}


def use_glue(properties: dict[str, str]) -> None:
    """Give pyiceberg its catalog `default`; it reads its settings once, when it is imported."""
    for name, value in properties.items():
        variable = name.replace(".", "__").replace("-", "_").upper()
        os.environ[f"PYICEBERG_CATALOG__DEFAULT__{variable}"] = value


def main(what: str, source: str, table: str, job_id: str, *place: str) -> None:
    """Append `source` to a new table, or upsert it into the one there is."""
    where = Place(*place)
    properties = where.catalog()
    use_glue(properties)

    import dlt

    credentials = {
        "aws_access_key_id": properties["client.access-key-id"],
        "aws_secret_access_key": properties["client.secret-access-key"],
        "aws_session_token": properties["client.session-token"],
        "region_name": where.region,
        "endpoint_url": where.endpoint,
    }
    dataset, name = table.split(".")
    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=str(Path.cwd().parent / "dlt-pipelines"),
        destination=dlt.destinations.filesystem(where.warehouse, credentials=credentials),
        dataset_name=dataset,
    )
    read = rows(source, job_id)
    disposition: Any = "append" if what == "append" else UPSERT
    resource = dlt.resource(
        [read if what == "append" else latest(read)],
        name=name,
        primary_key=KEY,
        write_disposition=disposition,
        table_format="iceberg",
    )
    pipeline.run(resource).raise_on_failed_jobs()


if __name__ == "__main__":
    main(*sys.argv[1:])
