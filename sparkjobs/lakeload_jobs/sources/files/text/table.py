"""The table that the text files of one load make: columns, types, and its rows in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import REJECT_LIMIT, ColumnsSpec, OnBadValue, RejectLimit
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.rows.columns import types_of
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.files.file_state import FileState, folder_base, folder_values
from lakeload_jobs.sources.files.text.csv_files import Columns, CsvReader
from lakeload_jobs.sources.files.text.inference import (
    ColumnEvidence,
    ColumnType,
    reconcile,
    undeclared_formats,
)
from lakeload_jobs.sources.files.text.opening import FileBytes, is_splittable
from lakeload_jobs.sources.files.text.options import CsvOptions, read_csv_options
from lakeload_jobs.sources.files.text.splits import (
    ONE_TASK,
    Declared,
    MalformedRecord,
    Parallelism,
    ReadText,
    RunScan,
    Scan,
    Scanned,
    check_bad,
    cut_files,
    scan_files,
    split_text,
)
from lakeload_jobs.sources.files.text.values import (
    TextFormats,
    UnknownType,
    declared_type,
    describe_bad,
    parse_text,
    text_type,
)

_NOTES_SHOWN = 5


@dataclass(frozen=True)
class TextTable:
    """The rows of text files. `names` are all columns of the files, `schema` are those that are
    loaded and helpers."""

    names: tuple[str, ...]
    schema: pa.Schema
    splits: Splits
    warnings: tuple[str, ...]

    @property
    def columns(self) -> tuple[pa.Field[Any], ...]:
        """Those that are loaded, without helpers."""
        return tuple(one for one in self.schema if not one.name.startswith(HELPER_PREFIX))


@dataclass(frozen=True)
class CsvTable:
    """CSV files that make one table. `recorded` are the types that source columns have in the
    table that is there, `all_columns` says that a condition may name columns that are not loaded.
    """

    files: tuple[FileState, ...]
    options: Mapping[str, str]
    columns: ColumnsSpec = field(default_factory=ColumnsSpec)
    on_bad_value: OnBadValue = "FAIL"
    recorded: Mapping[str, str] = field(default_factory=dict)
    all_columns: bool = False
    keeps_types: bool = True
    """Text between the numbers of a table's column is bad, and does not make the column text."""
    opener: FileBytes = field(default_factory=FileBytes)
    max_rejected: RejectLimit = REJECT_LIMIT

    def split(self, run: RunScan, parallelism: Parallelism = ONE_TASK) -> TextTable:
        """Read all files once for what they hold, and return their rows in parts.

        Raises `LoadFailed` for what cannot be read, `InvalidInput` for types and columns that are
        not there, and `AwsError`.
        """
        options, _ = read_csv_options(self.options)
        formats = text_formats(options)
        declared = self._declared(formats)
        given = self.columns
        loaded = Columns() if self.all_columns else Columns(given.include, given.exclude)
        reader = CsvReader(self.opener, options, frozenset(self.recorded), loaded)

        def can_be_cut(file: FileState) -> bool:
            return is_splittable(self.opener, file, options.encoding)

        base = folder_base(self.files, self.options)
        pieces = [
            replace(piece, folders=folder_values(piece.file.path, base))
            for piece in cut_files(self.files, can_be_cut, parallelism)
        ]
        infers = options.infer != "STRINGS"
        scan = Scan(reader, declared, formats, self.recorded, infers=infers)
        scanned = scan_files(pieces, scan, run)
        check_bad(scanned, self.on_bad_value, self.max_rejected)
        names = _united(scanned)
        _check_known(declared.kinds, names)
        evidence = _merged(names, scanned, scan)
        recorded = types_of(names, self.recorded)
        for name in names:
            evidence[name].recorded = recorded.get(name)
        types = {
            name: self._type(scan, evidence[name], name, options)
            for name in names
            if name in loaded
        }
        # Columns keep the type of the table although not each value is of it.
        kept = {
            name: text_type(found.name)
            for name, found in types.items()
            if found.origin == "RECORDED" and not evidence[name].fits(found.name)
        }
        exact = dict.fromkeys(kept, undeclared_formats(formats))
        if kept and self.on_bad_value == "FAIL":
            again = Declared(kept, exact)
            pieces = [found.piece for found in scanned]
            check_bad(run(Scan(reader, again, formats, infers=False), pieces), self.on_bad_value)
        kinds = {
            name: declared.kinds[name] if name in declared.kinds else text_type(found.name)
            for name, found in types.items()
        }
        _check_folders(scanned, kinds, declared, formats)
        schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
        written = Declared({**declared.kinds, **kept}, {**declared.formats, **exact})
        read = ReadText(reader, schema, written, formats, self.on_bad_value)
        splits = split_text(scanned, read, parallelism)
        return TextTable(names, read.batch_schema, splits, _warnings(scanned))

    def _declared(self, formats: TextFormats) -> Declared:
        kinds, own = {}, {}
        for name, kind in (self.columns.types or {}).items():
            try:
                kinds[name], unit = declared_type(kind)
            except UnknownType as error:
                raise InvalidInput(
                    f"`columns.types` gives column `{name}` the type `{kind}`: {error}",
                    hint="use a type such as `bigint`, `decimal(12,2)` or `timestamp`",
                ) from error
            own[name] = replace(formats, timestamp_unit=unit)
        return Declared(kinds, own)

    def _type(
        self, scan: Scan, evidence: ColumnEvidence, name: str, options: CsvOptions
    ) -> ColumnType:
        given = (self.columns.types or {}).get(name)
        if given is None and not scan.infers:
            return ColumnType("string", "INFERRED")
        found = reconcile(given, evidence, options.infer)
        if self.keeps_types or found.origin != "RECORDED" or evidence.fits(found.name):
            return found
        return ColumnType(evidence.infer(options.infer), "INFERRED", evidence.misfit)


def text_formats(options: CsvOptions) -> TextFormats:
    """Return how values are written."""
    return TextFormats(
        null_texts=options.null_values,
        nan_words=(options.nan_value,),
        infinity_words=(options.positive_infinity,),
        minus_infinity_words=(options.negative_infinity,),
        decimal_mark=options.decimal_mark,
        thousands_mark=options.thousands_mark,
        date_pattern=options.date_format,
        timestamp_pattern=options.timestamp_format,
        timestamp_ntz_pattern=options.timestamp_ntz_format,
        zone=options.time_zone,
    )


def _united(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    """Return the columns of all files, in the order of the first that has each; those of folders
    come last."""
    names: dict[str, None] = {}
    for found in scanned:
        names.update(dict.fromkeys(found.piece.names))
    for found in scanned:
        names.update(dict.fromkeys(name for name, _ in found.piece.folders))
    return tuple(names)


def _merged(
    names: Sequence[str], scanned: Sequence[Scanned], scan: Scan
) -> dict[str, ColumnEvidence]:
    merged = {name: scan.no_evidence(name) for name in names}
    for found in scanned:
        folders = dict(found.piece.folders)
        for name, evidence in found.evidence.items():
            if name not in folders:
                merged[name].merge(evidence)
    texts: dict[str, dict[str | None, None]] = {}
    for found in scanned:
        for name, text in found.piece.folders:
            texts.setdefault(name, {})[text] = None
    for name, values in texts.items():
        merged[name].add(pa.array(list(values), pa.string()))
    return merged


def _check_known(types: Mapping[str, pa.DataType], names: Sequence[str]) -> None:
    for name in types:
        if name not in names:
            raise InvalidInput(
                f"`columns.types` names the column `{name}`, which the source does not have",
                hint=did_you_mean(name, names) or f"the columns are `{'`, `'.join(names)}`",
            )


def _check_folders(
    scanned: Sequence[Scanned],
    kinds: Mapping[str, pa.DataType],
    declared: Declared,
    formats: TextFormats,
) -> None:
    seen: set[tuple[str, str | None]] = set()
    for found in scanned:
        for name, text in found.piece.folders:
            if text is None or name not in kinds or (name, text) in seen:
                continue
            seen.add((name, text))
            own = declared.formats.get(name, formats)
            if len(parse_text(pa.array([text], pa.string()), kinds[name], own)[1]):
                raise MalformedRecord(
                    f"reading `{found.piece.file.path}`: the folder of column `{name}`: "
                    f"{describe_bad(text, kinds[name], own)}",
                    hint="give the column another type with `columns.types`",
                )


def _warnings(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    """Say which files lack columns that others have, and what is odd about single files."""
    files = {found.piece.file.path: frozenset(found.piece.names) for found in scanned}
    files = {path: names for path, names in files.items() if names}
    warnings = []
    for name in dict.fromkeys(name for found in scanned for name in found.piece.names):
        without = [path for path, names in files.items() if name not in names]
        if without:
            some = f"`{without[0]}`" + (f" and {len(without) - 1:,} more" if without[1:] else "")
            warnings.append(f"column `{name}` is not in {some}: it is null in their rows")
    notes = list(dict.fromkeys(note for found in scanned for note in found.notes))
    more = [f"and the same of {len(notes) - _NOTES_SHOWN:,} more"] if notes[_NOTES_SHOWN:] else []
    return (*warnings, *notes[:_NOTES_SHOWN], *more)
