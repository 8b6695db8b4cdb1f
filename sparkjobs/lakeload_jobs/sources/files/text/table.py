"""The table that the text files of one load make: columns, types, and its rows in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import (
    REJECT_LIMIT,
    ColumnsSpec,
    JobSpec,
    OnBadValue,
    OnTypeConflict,
    RejectLimit,
    TableSpec,
)
from lakeload_jobs.core.names import did_you_mean, spelling
from lakeload_jobs.rows.columns import in_source_spelling, types_of
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.sources.base import EarlierColumns, Spellings, Splits, set_aside_warnings
from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns
from lakeload_jobs.sources.files.text.inference import (
    ColumnEvidence,
    ColumnType,
    TypeEvidence,
    reconcile,
    undeclared_formats,
)
from lakeload_jobs.sources.files.text.mostly_numbers import number_warnings
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import (
    Declared,
    EmptyRecords,
    MalformedRecord,
    PartReader,
    ReadText,
    RunScan,
    Scan,
    Scanned,
    SpelledReader,
    TextPart,
    check_bad,
    cut_files,
    scan_files,
    split_text,
)
from lakeload_jobs.sources.files.text.stored import StoredFiles, StoredReader
from lakeload_jobs.sources.files.text.values import TextFormats, describe_bad, parse_text
from lakeload_jobs.sources.files.united_columns import (
    SharedNames,
    check_one_table,
    names_by_file,
    other_spellings,
    shared_names,
)
from lakeload_jobs.sources.part_sizes import ONE_TASK, Parallelism
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, folder_base, folder_values
from lakeload_jobs.sources.type_names import UnknownType, text_type

_NOTES_SHOWN = 5


@dataclass(frozen=True)
class TextTable:
    """The rows of text files. `names` are all columns of the files, none where all of these are set
    aside, and `schema` are those that are loaded and helpers."""

    names: tuple[str, ...]
    schema: pa.Schema
    splits: Splits
    warnings: tuple[str, ...]
    spellings: Spellings = ()

    @property
    def columns(self) -> tuple[pa.Field[Any], ...]:
        """Those that are loaded, without helpers."""
        return tuple(one for one in self.schema if not one.name.startswith(HELPER_PREFIX))


@dataclass(frozen=True)
class TextFiles:
    """Text files that make one table, and how they are read. `recorded` are the types that source
    columns have in the table that is there, and `targets` their names in it. `all_columns` says
    that a condition may name columns that are not loaded. `spelled` are names that are read as
    those of other files.
    """

    files: tuple[FileState, ...]
    reading: TextReading
    columns: ColumnsSpec = field(default_factory=ColumnsSpec)
    on_bad_value: OnBadValue = "FAIL"
    recorded: Mapping[str, str] = field(default_factory=dict)
    all_columns: bool = False
    on_type_conflict: OnTypeConflict = "FAIL"
    """FAIL: text between the numbers of a table's column is bad, and does not make it text. TEXT:
    the column is text where its values are of another type."""
    opener: FileBytes = field(default_factory=FileBytes)
    max_rejected: RejectLimit = REJECT_LIMIT
    targets: Mapping[str, str] = field(default_factory=dict)
    spelled: SharedNames = field(default_factory=dict)
    loaded: frozenset[FileState] | None = None
    """The files whose rows are loaded: others only say which columns there are. None: all."""

    def split(self, run: RunScan, parallelism: Parallelism = ONE_TASK) -> TextTable:
        """Read all files once for what they hold, and return their rows in parts.

        Raises `LoadFailed` for what cannot be read, `InvalidInput` for types and columns that are
        not there, and `AwsError`.
        """
        reading, formats = self.reading, self.reading.values.formats
        reader, declared = self._reader(), self._declared(formats)
        scan = Scan(
            reader,
            declared,
            reading.values,
            self.recorded,
            infers=reading.infers,
            # Stored records are in no file that could be at fault.
            sets_aside=self.on_bad_value == "QUARANTINE" and not self._is_stored,
        )
        every = scan_files(self._parts(parallelism), scan, run)
        scanned = [found for found in every if self._loads(found.part.file)]
        check_bad(scanned, self.on_bad_value, reading.values, self.max_rejected)
        readable = [found for found in every if not found.set_aside]
        if not readable and scanned:
            return self._only_rejects(reader, scanned, parallelism)
        names = self._names(readable)
        shared, columns = self._spellings(readable)
        if shared or columns != self.columns:
            # What was read under other names, or for settings that have others, is read again.
            again = replace(self, spelled=shared or self.spelled, columns=columns)
            return again.split(run, parallelism)
        if names:  # Files without a record name no column, and have none that is wrong.
            _check_known(declared.kinds, names)
        evidence = _merged(names, readable, scan, formats)
        types = self._types(names, evidence)
        kept = self._kept(types, evidence, formats)
        if kept.kinds and self.on_bad_value == "FAIL":
            again_read = Scan(reader, kept, reading.values, infers=False)
            found_bad = run(again_read, [found.part for found in scanned])
            check_bad(found_bad, self.on_bad_value, reading.values, keeps_types=True)
        kinds = {
            name: declared.kinds[name]
            if name in declared.kinds
            else reading.inferred_type(found.name)
            for name, found in types.items()
        }
        _check_folders(readable, kinds, declared, formats)
        schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
        written = declared.with_types(kept)
        if self.on_bad_value == "FAIL":
            # The first pass has found no bad value.
            reader = reading.second_reader(reader, schema, written)
        read = ReadText(reader, schema, written, reading.values, formats, self.on_bad_value)
        splits = split_text(scanned, read, parallelism)
        text = [name for name, kind in types.items() if kind == ColumnType("string", "INFERRED")]
        numbers = number_warnings(text, [found.numbers for found in readable], formats)
        warnings = (*self._warnings(scanned), *numbers, *_set_aside(scanned))
        spellings = other_spellings(self.spelled, names)
        return TextTable(names, read.batch_schema, splits, warnings, spellings)

    @cached_property
    def _projection(self) -> Columns:
        """The columns that are read."""
        given = self.columns
        return ALL_COLUMNS if self.all_columns else Columns(given.include, given.exclude)

    @property
    def _is_stored(self) -> bool:
        """Whether there are rejected records in the place of files."""
        return isinstance(self.opener, StoredFiles)

    def _parts(self, parallelism: Parallelism) -> list[TextPart]:
        """Return the parts of all files, with the values that their folders name."""

        def can_be_cut(file: FileState) -> bool:
            return not self._is_stored and self.reading.can_be_cut(self.opener, file)

        base = folder_base(self.files, self.reading.written)
        return [
            replace(part, folders=folder_values(part.file.path, base))
            for part in cut_files(self.files, can_be_cut, parallelism)
        ]

    def _types(
        self, names: Sequence[str], evidence: Mapping[str, TypeEvidence]
    ) -> dict[str, ColumnType]:
        """Return the types of the columns that are loaded."""
        recorded = types_of(names, self.recorded)
        return {
            name: self._type(evidence[name], name, recorded.get(name))
            for name in names
            if name in self._projection
        }

    def _kept(
        self,
        types: Mapping[str, ColumnType],
        evidence: Mapping[str, TypeEvidence],
        formats: TextFormats,
    ) -> Declared:
        """Return the types that columns keep from the table although not each value is of them."""
        kinds = {
            name: text_type(found.name)
            for name, found in types.items()
            if found.origin == "RECORDED" and not evidence[name].fits(found.name)
        }
        return Declared(kinds, dict.fromkeys(kinds, undeclared_formats(formats)))

    def _warnings(self, scanned: Sequence[Scanned]) -> tuple[str, ...]:
        """Return what is odd about the files that are read."""
        if not self.reading.keeps_order:
            return ()
        return _warnings([found for found in scanned if not found.set_aside])

    def _loads(self, file: FileState) -> bool:
        return self.loaded is None or file in self.loaded

    def _reader(self) -> PartReader:
        """Return what reads the files, or the rejected records in their place."""
        opener, stored = self.opener, None
        if isinstance(opener, StoredFiles):
            stored = {path: text.names for path, text in opener.texts.items()}
        reader = self.reading.reader(
            opener,
            ALL_COLUMNS if self.spelled else self._projection,
            known=self.recorded,
            sets_aside=self.on_bad_value == "QUARANTINE",
            stored=stored,
        )
        if isinstance(opener, StoredFiles):
            reader = StoredReader(reader, opener)
        return SpelledReader(reader, self.spelled) if self.spelled else reader

    def _spellings(self, scanned: Sequence[Scanned]) -> tuple[SharedNames, ColumnsSpec]:
        """Return names that other files spell in another way, and the settings as the source spells
        them. Raises `LoadFailed` for a file of another table."""
        files = names_by_file((found.part.file.path, found.part.names) for found in scanned)
        earlier, rename = EarlierColumns(self.recorded, self.targets), self.columns.rename or {}
        if not isinstance(self.opener, StoredFiles):
            check_one_table(files, earlier, rename, self.reading.other_table_hint)
        shared = {} if self.spelled else shared_names(files, earlier, rename)
        if shared:
            return shared, self.columns
        return {}, in_source_spelling(self.columns, _united(scanned))

    def _names(self, scanned: Sequence[Scanned]) -> tuple[str, ...]:
        """Return the columns. Raises `LoadFailed` where rows have none."""
        names = _united(scanned)
        if not names and any(found.part.rows for found in scanned):
            raise LoadFailed(
                "the source has rows but no columns",
                hint="check `format`, and whether all records are empty",
            )
        if not names or self.reading.keeps_order:
            return names
        # Columns of the table come first, in its order. A field that no record has yet may have a
        # type already.
        places = {spelling(name): place for place, name in enumerate(self.recorded)}
        ordered = sorted(names, key=lambda name: places.get(spelling(name), len(places)))
        return tuple(dict.fromkeys((*ordered, *(self.columns.types or {}))))

    def _declared(self, formats: TextFormats) -> Declared:
        kinds, own = {}, {}
        for name, kind in (self.columns.types or {}).items():
            try:
                kinds[name], unit = self.reading.declared_type(kind)
            except UnknownType as error:
                raise InvalidInput(
                    f"`columns.types` gives column `{name}` the type `{kind}`: {error}",
                    hint="use a type such as `bigint`, `decimal(12,2)` or `timestamp`",
                ) from error
            own[name] = replace(formats, timestamp_unit=unit)
        return Declared(kinds, own)

    def _type(self, evidence: TypeEvidence, name: str, recorded: str | None) -> ColumnType:
        given, reading = (self.columns.types or {}).get(name), self.reading
        if given is None and not reading.infers:
            return ColumnType("string", "INFERRED")
        policy = self.on_type_conflict
        return reconcile(given, recorded, evidence, reading.options.infer, on_type_conflict=policy)

    def _only_rejects(
        self, reader: PartReader, scanned: Sequence[Scanned], parallelism: Parallelism
    ) -> TextTable:
        """Return the table of files that are all set aside: it has no columns."""
        values = self.reading.values
        read = ReadText(reader, pa.schema([]), Declared(), values, values.formats, "QUARANTINE")
        splits = split_text(scanned, read, parallelism)
        return TextTable((), read.batch_schema, splits, _set_aside(scanned))


def text_files(
    spec: JobSpec,
    table: TableSpec,
    reading: TextReading,
    files: Sequence[FileState],
    earlier: EarlierColumns,
    opener: FileBytes,
    max_rejected: RejectLimit,
) -> TextFiles:
    """Return the files of a table, read as `reading` says."""
    return TextFiles(
        tuple(files),
        reading,
        table.columns,
        spec.on_bad_value_of(table),
        earlier.types,
        all_columns=table.where is not None or table.deleted_when is not None,
        on_type_conflict=spec.on_type_conflict_of(table),
        opener=opener,
        max_rejected=max_rejected,
        targets=earlier.targets,
    )


def _set_aside(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    parts = [found.part for found in scanned if found.set_aside]
    return set_aside_warnings([(part.file.path, part.fault) for part in parts])


def _united(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    """Return the columns of all files, in the order of the first that has each; those of folders
    come last."""
    names: dict[str, None] = {}
    for found in scanned:
        names.update(dict.fromkeys(found.part.names))
    for found in scanned:
        names.update(dict.fromkeys(name for name, _ in found.part.folders))
    return tuple(names)


def _merged(
    names: Sequence[str], scanned: Sequence[Scanned], scan: Scan, formats: TextFormats
) -> dict[str, Any]:
    """Return the evidence of all columns."""
    merged = {name: scan.no_evidence(name) for name in names}
    for found in scanned:
        folders = dict(found.part.folders)
        for name, evidence in found.evidence.items():
            if name not in folders:
                merged[name].merge(evidence)
    texts: dict[str, dict[str | None, None]] = {}
    for found in scanned:
        for name, text in found.part.folders:
            texts.setdefault(name, {})[text] = None
    for name, values in texts.items():
        if not isinstance(merged[name], ColumnEvidence):
            # Folders are text in every format.
            merged[name] = ColumnEvidence(formats)
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
        for name, text in found.part.folders:
            if text is None or name not in kinds or (name, text) in seen:
                continue
            seen.add((name, text))
            own = declared.formats.get(name, formats)
            if len(parse_text(pa.array([text], pa.string()), kinds[name], own)[1]):
                raise MalformedRecord(
                    f"reading `{found.part.file.path}`: the folder of column `{name}`: "
                    f"{describe_bad(text, kinds[name], own)}",
                    hint="give the column another type with `columns.types`",
                )


def _warnings(scanned: Sequence[Scanned]) -> tuple[str, ...]:
    """Say which files lack columns that others have, and what is odd about single files."""
    files = {found.part.file.path: frozenset(found.part.names) for found in scanned}
    files = {path: names for path, names in files.items() if names}
    warnings = []
    for name in dict.fromkeys(name for found in scanned for name in found.part.names):
        without = [path for path, names in files.items() if name not in names]
        if without:
            some = f"`{without[0]}`" + (f" and {len(without) - 1:,} more" if without[1:] else "")
            warnings.append(f"column `{name}` is not in {some}: it is null in their rows")
    notes = list(dict.fromkeys(note for found in scanned for note in found.notes))
    empty: dict[str, EmptyRecords] = {}
    for found in scanned:
        path = found.part.file.path
        empty[path] = empty.get(path, EmptyRecords()).and_later(found.empty)
    notes += [f"`{path}`: {seen.warning}" for path, seen in empty.items() if seen.warning]
    more = [f"and the same of {len(notes) - _NOTES_SHOWN:,} more"] if notes[_NOTES_SHOWN:] else []
    return (*warnings, *notes[:_NOTES_SHOWN], *more)
