"""Grouping of inspected files into tables with common settings."""

from __future__ import annotations

import copy
import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakeload.sources.files.bounded import inspect_files
from lakeload.sources.files.formats.base import Guess, InspectedFile, OptionValue
from lakeload.sources.files.formats.text import inferred
from lakeload.sources.files.formats.typed import typed_columns
from lakeload.sources.files.inspection import is_prose
from lakeload.sources.files.own_files import own_files
from lakeload.sources.files.settings import table_of
from lakeload.sources.paths import is_utf8_name, local_paths, utf8_glob
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.core.names import normalize, visible_name
from lakeload_jobs.core.sizes import counted
from lakeload_jobs.core.yaml_lines import yaml_mapping
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS
from lakeload_jobs.sources.files.text.inference import ColumnEvidence
from lakeload_jobs.sources.files.text.mostly_numbers import number_warnings
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import (
    FileState,
    choose,
    folder_values,
    is_s3,
    normal_path,
    partition_base,
)
from lakeload_jobs.sources.paths.key_patterns import alternatives, names_path
from lakeload_jobs.sources.paths.local_listing import link_warnings, local_files, without_links

_INSPECTED = 10
"""Files of a table that are opened: the first ones and the last."""
_MOST_OPENED = 1000
"""Further files that are opened where those of a group differ."""
_DATES_SHOWN = 3
"""Columns of dates in JSON that a guess names."""
_ALIKE = 0.5
"""Files of one table have more than this share of their columns in common."""

ListObjects = Callable[[Sequence[str]], Sequence[FileState]]
"""Lists what `s3://` paths name."""


@dataclass(frozen=True)
class InspectedTable:
    """Files that can be loaded as one table. `paths` are as a configuration file in `folder` has
    them; `inspected` are the files that were opened."""

    name: str
    paths: tuple[str, ...]
    files: int
    bytes: int
    inspected: tuple[InspectedFile, ...]
    columns: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: LakeloadError | None = None
    """Why the files cannot be loaded."""
    members: tuple[FileState, ...] = ()
    """All its files."""
    listing: Mapping[str, OptionValue] = field(default_factory=dict)
    """The reader options with which `paths` name no files of other tables."""
    base: str = ""
    """The folder of `column=value` folders, '' without such folders."""

    @property
    def rows(self) -> tuple[dict[str, str | None], ...]:
        """The first rows, as text, with the values that the folders of their file name."""
        first = self.first
        folders = dict(folder_values(first.file.path, self.base or None))
        return tuple(
            {**dict(zip(first.columns, row, strict=True)), **folders} for row in first.rows
        )

    @property
    def first(self) -> InspectedFile:
        """The file that the rows and options are those of."""
        return self.inspected[0]

    @property
    def format(self) -> FileFormatName | None:
        """The format of the files."""
        return self.first.format

    @property
    def options(self) -> dict[str, OptionValue]:
        """The reader options that a configuration needs."""
        return {**self.first.options, **self.listing}

    @property
    def rename(self) -> dict[str, str]:
        """The new names of columns that a configuration needs."""
        return self.first.rename

    @property
    def guesses(self) -> tuple[Guess, ...]:
        """What was detected; of the files behind the first one what that one does not say."""
        known = {guess.option: guess for guess in reversed(self.first.guesses)}
        for found in self.inspected[1:]:
            if _is_blank(found):
                continue
            known |= {one.option: one for one in found.guesses if one.option not in known}
        others = (g for g in known.values() if g not in self.first.guesses)
        return (*self.first.guesses, *others, *self._dates_as_text())

    @property
    def dates(self) -> dict[str, str]:
        """The types of columns of JSON that are text and hold nothing but dates."""
        kinds: dict[str, set[str]] = {}
        for found in self.inspected:
            for name, kind in found.dates.items():
                kinds.setdefault(name, set()).add(kind)
        return {name: min(own) for name, own in kinds.items() if len(own) == 1 and own != {""}}

    def _dates_as_text(self) -> Iterator[Guess]:
        if dates := self.dates:
            shown = ", ".join(f"`{name}`" for name in [*dates][:_DATES_SHOWN])
            more = len(dates) - _DATES_SHOWN
            shown += f" and {more:,} more" if more > 0 else ""
            reason = f"JSON has no dates, and the strings of {shown} stay text"
            instead = f"columns: {{types: {yaml_mapping(dates)}}}"
            yield Guess("infer", "SAFE", "MEDIUM", reason, instead)

    @property
    def rows_read(self) -> int:
        """The rows that types come from."""
        return sum(one.rows_read for one in self.inspected)

    @property
    def complete(self) -> bool:
        """Whether every row of every file was read, or none needed to be."""
        return self.files == len(self.inspected) and all(one.complete for one in self.inspected)


def inspect_paths(
    written: Sequence[str],
    folder: Path,
    opener: FileBytes,
    list_objects: ListObjects,
    on_file: Callable[[int, int], None] = lambda done, total: None,
    *,
    beside: Sequence[str] = (),
) -> tuple[InspectedTable, ...]:
    """Return the tables that files make. `written` are paths, globs and folders as a configuration
    file in `folder` has them. `on_file` is called with how many files were opened, of how many.
    `beside` are the absolute paths of files that will be written, and are no data.

    Raises `LoadFailed` for a path that names nothing, and `AwsError`.
    """
    groups: dict[tuple[str, ...], _Group] = {}
    faults: dict[str, LoadFailed] = {}
    known: set[str] = set()
    find_objects = _listed_once(list_objects)
    for path in written:
        for group in _groups(path, folder, find_objects, faults):
            # Of several paths that name a file the first one decides which table it is of.
            group.files = [file for file in group.files if file.path not in known]
            known |= {file.path for file in group.files}
            if group.files:
                there = groups.setdefault(group.key, group)
                there.files += [] if there is group else group.files
    some = [_some_of(group) for group in groups.values()]
    opened = list(counted_files(some, opener, on_file))
    # Files that were not opened may be of any table of their group, where that has several.
    others = [
        _others(group, found) if len(_kinds(found)) > 1 else []
        for group, found in zip(groups.values(), opened, strict=True)
    ]
    for found, more in zip(opened, counted_files(others, opener, on_file), strict=True):
        found += more
    tables = [
        table
        for group, found in zip(groups.values(), opened, strict=True)
        for table in _tables(group, folder, found)
    ]
    united = _united_folders(tables, folder, {_parent(path) for path in faults})
    reads = _Reads(folder, find_objects, beside)
    own = [_with_own_files(table, reads) for table in united]
    named = _named(
        [*_with_names_of_folders(own), *(_fault(*fault, folder) for fault in faults.items())]
    )
    return tuple(_with_other_formats(list(named)))


def _listed_once(list_objects: ListObjects) -> ListObjects:
    """Return what lists each path once: one of many objects takes a request for 1,000 of them."""
    found: dict[str, Sequence[FileState]] = {}

    def listed(paths: Sequence[str]) -> Sequence[FileState]:
        for path in paths:
            if path not in found:
                found[path] = list_objects([path])
        return [file for path in paths for file in found[path]]

    return listed


def _fault(path: str, error: LoadFailed, folder: Path) -> InspectedTable:
    """Return what stands for a file or folder that cannot be listed."""
    file = InspectedFile(FileState(path, 0, 0), error=error)
    return InspectedTable(_name(path), (written_path(path, folder),), 0, 0, (file,), error=error)


@dataclass
class _Group:
    """Files that may be one table by their names. `base` is the folder of `column=value` folders,
    `path` is set where the user's own path names exactly these files."""

    key: tuple[str, ...]
    files: list[FileState]
    path: str = ""
    base: str = ""


def _groups(
    path: str, folder: Path, list_objects: ListObjects, faults: dict[str, LoadFailed]
) -> Iterator[_Group]:
    if is_s3(path):
        files = [file for one in alternatives(path) for file in list_objects([one])]
    else:
        here: dict[str, LoadFailed] = {}
        found_files = local_files(local_paths(folder, path), on_fault=here.__setitem__)
        files = list(without_links(sorted(found_files, key=lambda file: file.path)))
        is_own = own_files(files)
        faults |= {at: error for at, error in here.items() if not is_own(at)}
        files = [file for file in files if not is_own(file.path)] or files
    is_pattern = glob.has_magic(path) or "{" in path
    found: dict[tuple[str, ...], _Group] = {}
    for file in files:
        base = _partition_base(file)
        suffix = "".join(Path(file.path).suffixes[-2:]).lower()
        if base:
            key: tuple[str, ...] = ("folders", base, suffix)
        elif is_pattern:
            key = ("pattern", path, suffix)
        else:
            # Parts of one table mostly differ in the digits of their names.
            key = ("files", _parent(file.path), re.sub(r"\d+", "#", Path(file.path).name))
        found.setdefault(key, _Group(key, [], base=base)).files.append(file)
    groups = list(found.values())
    # A load refuses a path that names what cannot be listed.
    if len(groups) == 1 and not faults:
        (group,) = groups
        one_file = len(files) == 1 and not files[0].root
        if is_pattern or one_file or (group.base and group.base == files[0].root):
            group.path = path
    yield from groups


def _parent(path: str) -> str:
    """Return the folder of a file, local or in S3."""
    return path.rpartition("/")[0] or "/"


def _partition_base(file: FileState) -> str:
    """Return the folder below which `column=value` folders are, '' without such folders."""
    if not file.partitioned:
        return ""
    below = file.path[len(file.root) :].split("/")
    first = next(place for place, name in enumerate(below) if "=" in name)
    return file.root + "/".join(below[:first])


def _some_of(group: _Group) -> list[FileState]:
    """Return the files of a group that are opened."""
    files = sorted(group.files, key=lambda file: file.path)
    return files if len(files) <= _INSPECTED else [*files[: _INSPECTED - 1], files[-1]]


def _others(group: _Group, inspected: Sequence[InspectedFile]) -> list[FileState]:
    """Return the files of a group that were not opened, as many as may be."""
    known = {found.file.path for found in inspected}
    return [file for file in group.files if file.path not in known][:_MOST_OPENED]


def counted_files(
    groups: Sequence[Sequence[FileState]], opener: FileBytes, on_file: Callable[[int, int], None]
) -> Iterator[list[InspectedFile]]:
    """Yield what the files of each group hold, and report each file."""
    done, total = 0, sum(map(len, groups))
    if total:
        on_file(done, total)
    for files in groups:
        inspected = []
        for file in inspect_files(files, opener):
            inspected.append(file)
            done += 1
            on_file(done, total)
        yield inspected


def _tables(
    group: _Group, folder: Path, inspected: Sequence[InspectedFile]
) -> Iterator[InspectedTable]:
    """Yield the tables of a group: one, unless the files differ."""
    files = sorted(group.files, key=lambda file: file.path)
    kinds = _kinds(inspected)
    if len(kinds) == 1:
        yield _table(files, kinds[0], folder, group.path, group.base)
        return
    left = len(files) - len(inspected)
    for number, kind in enumerate(kinds):
        table = _table([found.file for found in kind], kind, folder, "", group.base)
        table = replace(table, name=_of_several(table.name, kind) if group.base else table.name)
        if left and number == 0:
            text = f"{counted(left, 'file')} beside these are left out: the files differ, and only "
            text += f"{len(inspected):,} were opened"
            table = replace(table, warnings=(*table.warnings, text))
        yield table


def _kinds(inspected: Sequence[InspectedFile]) -> list[list[InspectedFile]]:
    """Return the files by the tables that they can be of."""
    kinds: list[list[InspectedFile]] = []
    for found in sorted(inspected, key=_has_no_rows):
        for kind in kinds:
            if _are_alike(kind[0], found):
                kind.append(found)
                break
        else:
            kinds.append([found])
    return kinds


def _are_alike(one: InspectedFile, other: InspectedFile) -> bool:
    """Whether two files can be of one table."""
    if one.error or other.error:
        return False
    if _is_blank(one) or _is_blank(other):
        return one.format in TEXT_FORMATS and other.format in TEXT_FORMATS
    if one.format != other.format:
        return False
    names, others = set(one.columns), set(other.columns)
    if not names or not others:
        return True
    in_common = len(names & others) / max(len(names), len(others))
    return in_common > _ALIKE and _dialect(one.options) == _dialect(other.options)


def _has_no_rows(found: InspectedFile) -> bool:
    """Whether a file says less of its table than others do: it is empty, or a header alone."""
    return found.error is None and found.rows_read == 0


def _is_blank(found: InspectedFile) -> bool:
    """Whether there is nothing in a file of text, which then may be of any table."""
    return _has_no_rows(found) and not found.columns and found.format in TEXT_FORMATS


def _dialect(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    return {name: value for name, value in options.items() if name in _SHARED}


_SHARED = frozenset(
    {
        *("backslash_escapes", "encoding", "escape", "header", "line_break", "quote", "records"),
        *("separator", "skip_rows"),
    }
)
"""Options that are the same in all files of a table."""


def _table(
    files: Sequence[FileState],
    inspected: Sequence[InspectedFile],
    folder: Path,
    path: str,
    base: str,
) -> InspectedTable:
    paths = (path,) if path else _written(files, folder, base)
    warnings = list(dict.fromkeys(text for found in inspected for text in _warnings(found, files)))
    warnings += link_warnings(files)
    error = next((found.error for found in inspected if found.error is not None), None)
    columns: dict[str, str] = {}
    try:
        columns = _columns(inspected)
        _check_names(paths, files, folder)
    except LakeloadError as failure:
        error = error or failure
    warnings += _number_warnings(inspected, columns)
    if base:
        columns |= _folder_columns(files, base)
    options = dict(inspected[0].options)
    for found in inspected[1:]:
        options |= {name: value for name, value in found.options.items() if name not in options}
    first = replace(inspected[0], options=options)
    return InspectedTable(
        _name(base or (paths[0] if len(paths) == 1 else re.sub(r"\d+", "*", files[0].path))),
        paths,
        len(files),
        sum(file.size for file in files),
        (first, *inspected[1:]),
        columns,
        tuple(warnings),
        error,
        tuple(files),
        base=base,
    )


def _name(path: str) -> str:
    """Return a table's name from its path; names such as Spark gives to parts say nothing."""
    if _is_part(path):
        return table_of(str(Path(path).absolute().parent))
    return table_of(path)


def _of_several(name: str, inspected: Sequence[InspectedFile]) -> str:
    """Return the name of one of several tables of the same folders, with that of its files where
    they have one."""
    files = {found.file.path.rpartition("/")[2] for found in inspected}
    globs = files if len(files) == 1 else {re.sub(r"\d+", "*", file) for file in files}
    if len(globs) > 1 or any(map(_is_part, files)):
        return name
    return f"{name}_{table_of(min(globs))}"


def _is_part(path: str) -> bool:
    """Whether a file's name is such as Spark gives to parts of a table."""
    return re.match(r"part[-_]\d", Path(path).name) is not None


def _warnings(found: InspectedFile, files: Sequence[FileState]) -> Iterator[str]:
    name = f"{Path(found.file.path).name}: " if len(files) > 1 else ""
    for warning in found.warnings:
        yield f"{name}{warning}"


def _number_warnings(
    inspected: Sequence[InspectedFile], columns: Mapping[str, str]
) -> tuple[str, ...]:
    counts = [found.numbers for found in inspected if found.numbers is not None]
    if not counts:
        return ()
    text = [name for name, kind in columns.items() if kind == "string"]
    return number_warnings(text, [seen.columns for seen in counts], counts[0].values.formats)


def _columns(inspected: Sequence[InspectedFile]) -> dict[str, str]:
    """Return the columns of all files. Raises `LoadFailed` where they cannot be united."""
    if inspected[0].footer is not None:
        return typed_columns([found.footer for found in inspected if found.footer is not None])
    evidence: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for found in inspected:
        for name, kind in found.columns.items():
            columns.setdefault(name, kind)
        for name, seen in found.evidence.items():
            if name in evidence:
                evidence[name].merge(seen)
            else:
                evidence[name] = copy.deepcopy(seen)
    return columns | inferred(evidence)


def _folder_columns(files: Sequence[FileState], base: str) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for file in files:
        for name, text in folder_values(file.path, base):
            values.setdefault(name, {}).update({} if text is None else {text: None})
    columns = {}
    for name, texts in values.items():
        seen = ColumnEvidence()
        seen.add(pa.array(list(texts), pa.string()))
        columns[name] = seen.infer("SAFE")
    return columns


def _written(files: Sequence[FileState], folder: Path, base: str) -> tuple[str, ...]:
    """Return paths that name exactly these files: a folder, a glob, or each of them."""
    if base:
        return (written_path(base, folder),)
    if len(files) > 1 and not is_s3(files[0].path):
        pattern = str(Path(files[0].path).parent / re.sub(r"\d+", "*", Path(files[0].path).name))
        named = {file.path for file in files}
        if "*" in Path(pattern).name and _matches(pattern) == named:
            return (written_path(pattern, folder),)
    return _each(files, folder)


def _each(files: Sequence[FileState], folder: Path) -> tuple[str, ...]:
    """Return the path of each file."""
    return tuple(_one_key(written_path(file.path, folder)) for file in files)


def _one_key(path: str) -> str:
    """Return a path whose braces are no alternatives: of local files those that are there win."""
    return path.replace("{", "[{]") if is_s3(path) and len(alternatives(path)) > 1 else path


@dataclass(frozen=True)
class _Reads:
    """What a load reads of paths that a configuration file in `folder` has."""

    folder: Path
    find_objects: ListObjects
    beside: Sequence[str] = ()

    def files(self, paths: Sequence[str], options: Mapping[str, OptionValue]) -> set[str] | None:
        """Return the files, None where a load would fail."""
        local = [one for path in paths if not is_s3(path) for one in local_paths(self.folder, path)]
        listing = {name: str(value) for name, value in options.items()}
        try:
            found = [*local_files(local), *self._later(local)]
            for path in filter(is_s3, paths):
                found += self.find_objects(alternatives(path))
            chosen = without_links(choose(found, listing))
            partition_base(chosen, listing)
        except (LoadFailed, AwsError):
            return None
        return {file.path for file in chosen}

    def _later(self, local: Sequence[str]) -> Iterator[FileState]:
        """Yield the files that will be there and that paths of this machine name."""
        for path in self.beside:
            for one in local:
                real, folder = os.path.realpath(path), f"{os.path.realpath(one).rstrip('/')}/"
                if real.startswith(folder):
                    root = normal_path(one)
                    yield FileState(f"{root}/{real.removeprefix(folder)}", 0, 0, root=root)
                elif names_path(one, path):
                    yield FileState(path, 0, 0)


def _with_own_files(table: InspectedTable, reads: _Reads) -> InspectedTable:
    """Return a table whose paths and options name its own files, none less and no file of another
    table."""
    own = {file.path for file in table.members}
    if table.error is not None or _names_each(table):
        return table
    for paths, options in ((table.paths, {}), *_ways(table.members, reads.folder)):
        if reads.files(paths, options) == own:
            return replace(table, paths=paths, listing=options)
    return table


def _names_each(table: InspectedTable) -> bool:
    """Whether the paths of objects are known to be right without a request."""
    keys = tuple(file.path for file in table.members)
    return table.paths == keys and all(map(is_s3, keys))


_NAMES_IN_A_FILTER = 8
"""So many names of files a filter lists."""


def _ways(
    files: Sequence[FileState], folder: Path
) -> Iterator[tuple[tuple[str, ...], dict[str, OptionValue]]]:
    """Yield the ways to name files, the ones first that name later files of the same kind too."""
    names = sorted({file.path.rpartition("/")[2] for file in files})
    globs = sorted({re.sub(r"\d+", "*", _hadoop_name(name)) for name in names})
    endings = {"".join(Path(name).suffixes[-2:]) for name in names}
    if base := next(filter(None, map(_partition_base, files)), ""):
        # The folders of values are columns where the folder above them is read, and only there.
        filters = [f"*{_hadoop_name(ending)}" for ending in endings if ending and len(endings) == 1]
        filters += globs if len(globs) == 1 else []
        if len(names) <= _NAMES_IN_A_FILTER:
            filters.append("{" + ",".join(map(_hadoop_name, names)) + "}")
        for one in filters:
            yield (written_path(base, folder),), {"pathGlobFilter": one}
        yield _each(files, folder), {"basePath": base}
    parents = {_parent(file.path) for file in files}
    if len(files) > 1 and len(parents) == 1:
        (parent,) = parents
        for name in [*globs, *(f"*{ending}" for ending in endings)]:
            yield (written_path(f"{parent}/{name}", folder),), {}
    yield _each(files, folder), {}


def _hadoop_name(name: str) -> str:
    """Return a file's name as a glob of Hadoop that matches it alone."""
    return re.sub(r"([\\{},*?\[\]])", r"\\\1", name)


def _matches(pattern: str) -> set[str]:
    try:
        return {file.path for file in local_files([pattern])}
    except LoadFailed:
        return set()


def _check_names(paths: Sequence[str], files: Sequence[FileState], folder: Path) -> None:
    """Raise `LoadFailed` where `?` for bytes that are no UTF-8 names other files too."""
    named = {path for file in files for path in (file.path, *file.links)}
    if all(is_utf8_name(path) for path in named):
        return
    for path in paths:
        if others := {file.path for file in local_files(local_paths(folder, path))} - named:
            raise LoadFailed(
                f"the files of `{path}` have names that are no UTF-8, and the path names "
                f"`{min(others)}` too",
                hint="rename the files",
            )


def written_path(path: str, folder: Path) -> str:
    """Return an absolute path as it is written in `folder`: relative where it is below, and a glob
    where it is no UTF-8."""
    return utf8_glob(_relative(path, folder))


def _relative(path: str, folder: Path) -> str:
    if is_s3(path):
        return path
    for start in (folder.absolute(), folder.resolve()):
        if Path(path).is_relative_to(start):
            return os.path.relpath(path, start)
    return path


def _united_folders(
    tables: list[InspectedTable], folder: Path, faulty: Collection[str]
) -> list[InspectedTable]:
    """Return the tables, with those that share a folder and all of their columns as one, except in
    folders with something that cannot be listed.

    Files of one table often have names that say nothing, such as those that Spark writes.
    """
    by_folder: dict[str, list[InspectedTable]] = {}
    for table in tables:
        found = table.inspected[0].file
        by_folder.setdefault(_parent(found.path) if found.root else "", []).append(table)
    united = []
    for name, inside in by_folder.items():
        united += [table for table in inside if is_prose(table.first.file.path)]
        inside = [table for table in inside if not is_prose(table.first.file.path)]
        if not inside:
            continue
        first, *others = sorted(inside, key=lambda table: _has_no_rows(table.first))
        if (
            name
            and name not in faulty
            and others
            and all(_are_equal(first, other) or _adds_nothing(first, other) for other in others)
        ):
            inside = [first, *others]
            files = [found for table in inside for found in table.inspected]
            paths = _of_folder(name, folder, inside)
            together = replace(
                _table([found.file for found in files], files, folder, paths[0], ""),
                paths=paths,
                files=sum(table.files for table in inside),
                bytes=sum(table.bytes for table in inside),
                name=table_of(name),
                members=tuple(file for table in inside for file in table.members),
            )
            united.append(together)
        else:
            united += inside
    return united


def beside(path: str, folder: Path) -> tuple[str, ...]:
    """Return the names of files beside those of a local glob that end alike and do not match it."""
    parent, _, name = path.rpartition("/")
    ending = Path(name).suffix
    if is_s3(path) or not glob.has_magic(name) or glob.has_magic(ending):
        return ()
    alike = {
        one for here in local_paths(folder, f"{parent or '.'}/*{ending}") for one in _matches(here)
    }
    matched = {one for here in local_paths(folder, path) for one in _matches(here)}
    return tuple(sorted(Path(one).name for one in alike - matched)) if matched else ()


def _of_folder(name: str, folder: Path, tables: Sequence[InspectedTable]) -> tuple[str, ...]:
    """Return paths that name the files of tables in one folder and no others: the folder, unless
    there are folders in it with files of other tables."""
    paths = tuple(path for table in tables for path in table.paths)
    if is_s3(name):
        return (f"{name}/",)
    named = {file.path for path in paths for file in local_files(local_paths(folder, path))}
    endings = {"".join(Path(path).suffixes[-2:]) for path in named}
    globs = [f"{name}/*{ending}" for ending in endings if len(endings) == 1]
    whole = next((path for path in (name, *globs) if _matches(path) == named), None)
    return paths if whole is None else (written_path(whole, folder),)


def _are_equal(one: InspectedTable, other: InspectedTable) -> bool:
    names = tuple(one.columns)
    named = not any(re.fullmatch(r"_c\d+", name) for name in names)
    return (
        one.error is None
        and other.error is None
        and bool(names)
        and named
        and names == tuple(other.columns)
        and one.format == other.format
        and _dialect(one.options) == _dialect(other.options)
    )


def _adds_nothing(one: InspectedTable, other: InspectedTable) -> bool:
    """Whether the files of another table are blank, and can be of this one."""
    return bool(one.columns) and all(
        _is_blank(found) and _are_alike(one.first, found) for found in other.inspected
    )


def _with_other_formats(tables: Sequence[InspectedTable]) -> Iterator[InspectedTable]:
    """Yield the tables with a warning where another one may be the same data in another format."""
    first: dict[tuple[str, str], InspectedTable] = {}
    for table in tables:
        path = Path(table.first.file.path)
        stem = re.sub(r"\d+", "#", path.name.partition(".")[0])
        other = first.setdefault((str(path.parent), stem), table)
        names, others = set(table.columns), set(other.columns)
        alike = names and len(names & others) > _ALIKE * max(len(names), len(others))
        if not alike or table.format == other.format:
            yield table
            continue
        text = (
            f"its files are {table.format}, and those of table `{other.name}` {other.format}, with "
            "columns of the same names: files of two formats are two tables. To load them as one, "
            "convert the files to one format; to keep the two, change nothing"
        )
        yield replace(table, warnings=(*table.warnings, text))


_LETTERS_OF_A_NAME = 3
"""A name that the files of a folder share says something if it has so many."""


def _with_names_of_folders(tables: Sequence[InspectedTable]) -> Iterator[InspectedTable]:
    """Yield the tables; one whose files share a letter or two alone, such as `r1.csv` and `r2.csv`,
    is called as its folder where it is the only table of this."""
    inside = Counter(folder for table in tables for folder in _folders(table))
    for table in tables:
        folders = _folders(table)
        short = len(normalize(table.name).strip("_")) < _LETTERS_OF_A_NAME
        if short and table.files > 1 and len(folders) == 1 and inside[min(folders)] == 1:
            table = replace(table, name=table_of(min(folders)))
        yield table


def _folders(table: InspectedTable) -> set[str]:
    """Return the folders of the files of a table that no glob of the user names."""
    return {_parent(found.path) if found.root else "" for found in table.members} - {""}


def _named(tables: Sequence[InspectedTable]) -> Iterator[InspectedTable]:
    """Yield the tables with names of which no two are the same in the lake: the format, and then a
    number, tells them apart."""
    taken: set[str] = set()
    for table in tables:
        name, number = table.name, 1
        if visible_name(name).lower() in taken and table.format:
            name = f"{table.name}_{table.format.lower()}"
        # A name with an underscore in front gets a `name` without it.
        while visible_name(name).lower() in taken:
            number += 1
            name = f"{table.name}_{number}"
        taken.add(visible_name(name).lower())
        yield replace(table, name=name)
