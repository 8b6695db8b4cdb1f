"""Columns and first rows of the files of a table, as a load would read them, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakeload.sources.base import ColumnsRequest, SampleRows, SourceColumns
from lakeload.sources.files.formats.registry import INSPECTION_OF
from lakeload.sources.files.formats.text import first_rows
from lakeload.sources.files.inspection import inspect_file
from lakeload_jobs.contract.spec import FilesInput, RejectLimit
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.rows.columns import in_source_spelling
from lakeload_jobs.sources.base import set_aside_warnings
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS, TYPED_FORMATS
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart, weight
from lakeload_jobs.sources.files.text.table import text_files
from lakeload_jobs.sources.files.typed.columns import (
    Column,
    kind_in_table,
    settled,
    type_name,
    unite,
)
from lakeload_jobs.sources.files.typed.rows import folder_types
from lakeload_jobs.sources.files.united_columns import (
    OTHER_TABLE_HINT,
    check_one_table,
    names_by_file,
    shared_names,
)
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, folder_base, folder_values, is_s3
from lakeload_jobs.sources.paths.local_listing import link_warnings
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.sources.type_names import UnknownType, declared_type, nested_type, spark_name

MAX_SCANNED = 128 << 20
"""Bytes of text that are read whole; of more, as much of the first files and the last."""
_MOST_FILES = 10
_MOST_FOOTERS = 500
_UNCUT = Parallelism(1, 1 << 62)


def read_columns(
    given: FilesInput, request: ColumnsRequest, readers: SourceReaders
) -> SourceColumns | None:
    """Return the columns that a load would find, None where only Spark can tell.

    Raises what the load would raise for files it cannot read.
    """
    read = _text_columns if given.format in TEXT_FORMATS else _typed_columns
    files = request.files
    if files is not None:
        return read(given, files, request, readers) if files else None
    files = list_files(given, readers)
    found = read(given, files, request, readers)
    return found and replace(found, warnings=(*found.warnings, *link_warnings(files)))


def read_sample(given: FilesInput, readers: SourceReaders) -> SampleRows | None:
    """Return the first rows of the first file, with the columns of its folders, None where only
    Spark reads the format.

    Raises `LoadFailed` and `AwsError`.
    """
    listed = list_files(given, readers)
    if not listed:
        return None
    opener = FileBytes(readers.identity(given), "plan")
    if given.format in TEXT_FORMATS:
        names, rows = first_rows(
            listed[0], TEXT_FORMATS[given.format].reading(given.options), opener
        )
    else:
        found = inspect_file(listed[0], opener)
        if found.error is not None:
            raise found.error
        names, rows = tuple(found.columns), found.rows
    if not rows:
        return None
    folders = dict(folder_values(listed[0].path, folder_base(listed, given.options)))
    own = [place for place, name in enumerate(names) if name not in folders]
    return SampleRows(
        (*(names[place] for place in own), *folders),
        tuple((*(row[place] for place in own), *folders.values()) for row in rows),
    )


def _text_columns(
    given: FilesInput,
    files: Sequence[FileState],
    request: ColumnsRequest,
    readers: SourceReaders,
) -> SourceColumns | None:
    spec, table = request.spec, request.table
    some, stop = list(files), None
    opener = FileBytes(readers.identity(given), "plan")
    as_text = spec.nested == "JSON"
    reading = TEXT_FORMATS[given.format].reading(given.options, nested_as_text=as_text)
    inspection = INSPECTION_OF[given.format]
    if any(inspection.takes_long(one, reading, opener) for one in some[:1]):
        return None
    if sum(weight(TextPart(file)) for file in files) > MAX_SCANNED:
        if len(some) > _MOST_FILES:
            some = [*some[: _MOST_FILES - 1], some[-1]]
        stop = MAX_SCANNED // len(some)

    def scan(scanning: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
        return [scanning(replace(part, stop=stop)) for part in parts]

    # What is bad among some of the bytes says nothing of its share of all.
    limit = spec.max_rejected_of(table) if stop is None else RejectLimit(percent=100)
    read = text_files(spec, table, reading, some, request.earlier, opener, limit)
    found = read.split(scan, _UNCUT)
    rows = sum(found.splits.counts or ())
    if rows and not found.names:
        return None  # all files are set aside: the columns are those of the table
    return SourceColumns(
        names=found.names,
        types={
            column.name: type_name(_written(column.type, request), text="string")
            if pt.is_nested(column.type)
            else spark_name(column.type)
            for column in found.columns
        },
        rows=rows,
        complete=stop is None,
        warnings=found.warnings,
    )


def _written(kind: Any, request: ColumnsRequest) -> Any:
    """Return a type with the names that fields have in the table (`rows.casts.written_value`)."""
    if pt.is_struct(kind):
        lower = request.spec.destination.parquet.update_glue_catalog
        names = unique_names([field.name for field in kind], lower=lower)
        inner = [_written(field.type, request) for field in kind]
        return pa.struct(list(zip(names, inner, strict=True)))
    if pt.is_map(kind):
        return pa.map_(_written(kind.key_type, request), _written(kind.item_type, request))
    return pa.list_(_written(kind.value_type, request)) if pt.is_list(kind) else kind


def _typed_columns(
    given: FilesInput,
    files: Sequence[FileState],
    request: ColumnsRequest,
    readers: SourceReaders,
) -> SourceColumns | None:
    some = list(files)
    if len(some) > _MOST_FOOTERS:
        some = [*some[: _MOST_FOOTERS - 1], some[-1]]
    opener = FileBytes(readers.identity(given), "plan")
    sets_aside = request.spec.on_bad_value_of(request.table) == "QUARANTINE"
    file_format = TYPED_FORMATS[given.format]
    if file_format.only_spark(given.options):
        return None
    # To find the parts of an object may take to read it.
    whole = not (file_format.counting_reads and any(is_s3(file.path) for file in some))
    footers = file_format.schemas(some, opener, sets_aside=sets_aside, counts=whole)
    faults = [(one.fault.path, one.fault.why) for one in footers if one.fault is not None]
    footers = tuple(one for one in footers if one.fault is None)
    if not footers:
        return None  # the columns are those of the table
    rename = request.table.columns.rename or {}
    file_names = names_by_file(
        (footer.file.path, (column.name for column in footer.columns)) for footer in footers
    )
    if len(some) == len(files):
        check_one_table(file_names, request.earlier, rename, lambda own, wanted: OTHER_TABLE_HINT)
    shared = shared_names(file_names, request.earlier, rename)
    footers = tuple(footer.renamed(shared.get(footer.file.path, {})) for footer in footers)
    options = {name.lower(): value for name, value in given.options.items()}
    folders = folder_types(files, folder_base(files, options))
    if folders is None or folders.keys() & (request.table.columns.types or {}).keys():
        return None  # Spark gives these columns their types
    first = footers[:1] if options.get("mergeschema", "true").lower() == "false" else footers
    own = dict.fromkeys(column.name for footer in first for column in footer.columns)
    names = tuple(own | dict.fromkeys(folders))
    chosen = in_source_spelling(request.table.columns, names)
    loaded = [
        name
        for name in names
        if (not chosen.include or name in chosen.include) and name not in chosen.exclude
    ]
    columns = unite(footers, [name for name in loaded if name not in folders])
    if any(column.only_spark for column in columns):
        return None
    return SourceColumns(
        names=names,
        types={
            column.name: _type(
                column,
                chosen.types or {},
                request.earlier.types,
                lambda kind: type_name(_written(kind, request), text="string"),
            )
            for column in columns
        }
        | {name: kind for name, kind in folders.items() if name in loaded},
        rows=sum(unit.rows for footer in footers for unit in footer.units) if whole else 1,
        complete=len(some) == len(files),
        warnings=set_aside_warnings(faults),
    )


def _type(
    column: Column,
    declared: Mapping[str, str],
    earlier: Mapping[str, str],
    shown: Callable[[Any], str],
) -> str:
    """Return the type of a column as Spark names it."""
    own = "void" if pt.is_null(column.kind) else shown(settled(column.kind))
    try:
        if column.name in declared:
            return spark_name(declared_type(declared[column.name])[0])
        if column.name in earlier:
            kind = nested_type(earlier[column.name])
            read = kind_in_table(column, kind)
            return earlier[column.name] if read == kind else shown(read)
    except UnknownType:
        return declared.get(column.name, own).lower().replace(" ", "")
    return own
