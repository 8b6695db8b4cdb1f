"""pipeline.yml with comments for whoever goes on editing it."""

from __future__ import annotations

from collections.abc import Iterator

from lakeload.init.answers import Answers
from lakeload.init.values import yaml_text
from lakeload_jobs.core.names import normalize

_OPTIONS = {
    "CSV": "  options: {header: true}   # sep, quote, nullValue, …: those of Spark's reader",
}
_INCREMENTAL = "  incremental: false   # true: each file is loaded once, new ones by the next run"
_NESTED = "nested: JSON   # structs, arrays and maps as JSON text; or NATIVE"
_S3 = """\
  # Files in S3 are read with the destination's credentials, unless the source has its own:
  # credentials: {role_arn: …, external_id: {env: SOURCE_EXTERNAL_ID}}"""


def pipeline_text(answers: Answers) -> str:
    """Return the document."""
    name = yaml_text(answers.name)
    schema = yaml_text(normalize(answers.name))
    lines = [
        "# What is loaded. `lakeload schema pipeline` lets an editor complete and check this file.",
        "version: 1",
        f"name: {name}   # identifies this pipeline in the lake: keep it when the file moves",
        "destination: destination.yml",
        f"destination_prefix: {schema}   # {_where(answers)}",
        *([_NESTED] if answers.table_format == "ICEBERG" else []),
        "",
        "source:",
        "  type: FILES",
        f"  format: {answers.source}",
        *filter(None, [_OPTIONS.get(answers.source, "")]),
        _INCREMENTAL,
        *([_S3] if answers.path.startswith("s3://") else []),
        "",
        "tables:",
        f"  - table: {yaml_text(answers.table)}",
        f"    path: {yaml_text(answers.path)}   # a file, folder or glob, or a list of them",
        *_mode(answers),
        "    # columns:",
        '    #   types: {id: bigint, amount: "decimal(12,2)", ordered_at: timestamp}',
        "    #   exclude: [password_hash]",
        "    # where: country = 'DE'         # Spark SQL over source columns",
    ]
    return "\n".join(lines) + "\n"


def _mode(answers: Answers) -> Iterator[str]:
    if answers.mode:
        yield f"    mode: {answers.mode}   # APPEND adds rows, OVERWRITE replaces, UPSERT by key"
    if answers.primary_key:
        names = filter(None, (name.strip() for name in answers.primary_key.split(",")))
        yield f"    primary_key: [{', '.join(map(yaml_text, names))}]"
        yield "    # cursor: updated_at           # of several versions of a row the latest wins"
        yield "    # deleted_when: is_gone        # such rows are marked; or `deletes: DELETE`"
    else:
        yield "    # primary_key: [id]            # makes `_supa_id`; without it all columns do"
    if answers.mode:
        yield "    # partition_by: [day(ordered_at)]   # or bucket(16, id), truncate(4, name), name"


def _where(answers: Answers) -> str:
    if answers.in_glue:
        return "the database's name, after the Glue prefix"
    if answers.table_format == "ICEBERG":
        return "the namespace of the tables"
    return "the folder of the tables"
