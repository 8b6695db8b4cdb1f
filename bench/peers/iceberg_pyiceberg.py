"""pyiceberg's `Table.upsert` into a Glue table, in a process of its own: no JVM.

Arguments: append or merge, the input folder, the table, the job id, then endpoint, region, role and
warehouse. The append makes the table.
"""

from __future__ import annotations

import sys

from pyiceberg.catalog import load_catalog

from bench.peers.iceberg_rows import KEY, Place, latest, rows


def main(what: str, source: str, table: str, job_id: str, *place: str) -> None:
    """Append `source` to a new table, or upsert it into the one there is."""
    catalog = load_catalog("lake", **Place(*place).catalog())
    read = rows(source, job_id)
    if what == "append":
        catalog.create_namespace_if_not_exists(table.rsplit(".", 1)[0])
        catalog.create_table(table, schema=read.schema).append(read)
    else:
        catalog.load_table(table).upsert(latest(read), join_cols=[KEY])


if __name__ == "__main__":
    main(*sys.argv[1:])
