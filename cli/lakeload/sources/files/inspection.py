"""Inspection of files: format, dialect, columns and types, from their content and without Spark.

A bounded part of large files is read. The readers and the inference are those of a load.
"""

from __future__ import annotations

import re
import traceback
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lakeload.sources.files.encoding import suggest_encoding
from lakeload.sources.files.formats.base import InspectedFile
from lakeload.sources.files.formats.registry import INSPECTIONS
from lakeload.sources.files.formats.text import START_BYTES, peek
from lakeload.sources.files.formats.typed import inspect_typed
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.sources.files.formats.base import TypedFormat
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS, TYPED_FORMATS
from lakeload_jobs.sources.files.text.opening import NOT_A_ZIP_FILE, open_text, open_unpacked
from lakeload_jobs.sources.files.text.opening import compression as packing
from lakeload_jobs.sources.files.typed.columns import unreadable
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.source_bytes import byte_order_mark

_ENCODING_BYTES = 4 << 20


def inspect_file(file: FileState, files: FileBytes) -> InspectedFile:
    """Return what a file holds. What is wrong with the file is its `error`, and so is that this
    one object may not be read. Raises `AwsError` for what would be the same with other files."""
    try:
        return _inspect(file, files)
    except AwsError as error:
        if not error.denied:
            raise
        return InspectedFile(file, error=error)
    except LakeloadError as error:
        return InspectedFile(file, error=error)
    except MemoryError:  # Arrow's is one of its own exceptions, too
        return not_inspected(file, "its inspection needs more memory than it may have")
    except (OSError, pa.ArrowException) as error:
        return InspectedFile(file, error=unreadable(file.path, error, hint=_DAMAGED_HINT))
    except Exception as error:  # noqa: BLE001 - the other files are inspected
        return InspectedFile(file, error=_bug(file.path, error))


def not_inspected(file: FileState, why: str) -> InspectedFile:
    """Return what stands for a file whose inspection was given up."""
    error = LoadFailed(
        f"reading `{file.path}`: {why}",
        hint="leave the file out, or write the settings of its table by hand",
    )
    return InspectedFile(file, error=error)


_DAMAGED_HINT = "copy the file from its source again, or leave it out"


def _bug(path: str, error: Exception) -> LoadFailed:
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:200]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return LoadFailed(
        f"reading `{path}`: a bug in lakeload: {type(error).__name__} in {where}: {said}",
        hint="report it with the file, and leave the file out",
    )


def _inspect(file: FileState, files: FileBytes) -> InspectedFile:
    with files.stream(file) as raw:
        head = peek(raw, _HEAD)
    if file_format := _typed_format(file, head, files):
        return inspect_typed(file, file_format, files)
    if packing(file.path, head) == "zip":
        _check_archive(file, files)
    return _inspect_text(file, files)


_HEAD = 64
"""Bytes that say whether a file whose first ones are those of a format is text all the same."""
_UNSUPPORTED = (
    (b"PARE", "an encrypted Parquet file", "decrypt it"),
    (b"ARROW1", "an Arrow file (Feather)", "write it as Parquet"),
    (b"FEA1", "a Feather file", "write it as Parquet"),
    (b"SQLite format 3\0", "an SQLite database", "export its tables as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "save it as CSV"),
    (b"%PDF", "a PDF", None),
    (b"\x89HDF", "an HDF5 file", "write it as Parquet"),
    (b"\x93NUMPY", "an array of NumPy", "write it as Parquet"),
    (b"\x89PNG", "a picture", None),
    (b"\xff\xd8\xff", "a picture", None),
    (b"GIF8", "a picture", None),
    (b"\x7fELF", "a program", None),
    (b"$FL2", "a file of SPSS", "write it as Parquet or CSV"),
    (b"<?xml", "XML", "convert it to CSV or JSON"),
    (b"<!DOCTYPE", "HTML", "convert it to CSV or JSON"),
    (b"<html", "HTML", "convert it to CSV or JSON"),
    (b"<stata_dta>", "a file of Stata", "write it as Parquet or CSV"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "unpack it"),
    (b"Rar!\x1a", "a RAR archive", "unpack it"),
)
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})


def _typed_format(file: FileState, head: bytes, files: FileBytes) -> TypedFormat | None:
    """Return the format that the first bytes of a file name."""
    for one in TYPED_FORMATS.values():
        if _begins(head, one.magic):
            return one
        if head.startswith(one.magic) and file.size > len(head):
            # Its data may begin with text, and its end does not.
            with files.stream(file, file.size - 4) as raw:
                if peek(raw, 4).startswith(one.magic):
                    return one
    return None


def _begins(content: bytes, magic: bytes) -> bool:
    """Whether content begins with the mark of a format, and is no table with a column `ORC_ID`."""
    if magic.startswith(b"<"):
        return content.lstrip()[:16].lower().startswith(magic.lower())
    head = content[:_HEAD]
    is_text = magic.isalnum() and head == head.translate(None, _CONTROLS)
    return head.startswith(magic) and not is_text


def _not_supported(path: str, what: str, hint: str | None) -> LoadFailed:
    *others, last = [one.title for one in FILE_FORMATS.values()]
    return LoadFailed(
        f"reading `{path}`: it is {what}, and lakeload reads {', '.join(others)} and {last}",
        hint=hint or "list only the files with data",
    )


_DOCUMENTS = (
    ("xl/workbook.xml", "an Excel workbook", "save its sheets as CSV"),
    ("xl/workbook.bin", "an Excel workbook", "save its sheets as CSV"),
    ("content.xml", "a document of LibreOffice", "save its sheets as CSV"),
    ("word/document.xml", "a Word document", None),
)


def _check_archive(file: FileState, files: FileBytes) -> None:
    """Raise `LoadFailed` for a document that is a zip file inside."""
    with files.seekable(file) as stream:
        try:
            names = set(zipfile.ZipFile(stream).namelist())
        except NOT_A_ZIP_FILE:
            return  # whoever unpacks it says what is wrong
    for name, what, hint in _DOCUMENTS:
        if name in names:
            raise _not_supported(file.path, what, hint)


def _check_supported(path: str, start: bytes) -> None:
    """Raise `LoadFailed` for content that is known not to be data that is read."""
    if kind := next((one for one in TYPED_FORMATS.values() if _begins(start, one.magic)), None):
        raise LoadFailed(
            f"reading `{path}`: it is an archive, and {kind.name} files inside another file are "
            "not read",
            hint="unpack it",
        )
    for magic, what, hint in _UNSUPPORTED:
        if _begins(start, magic):
            raise _not_supported(path, what, hint)
    if start[257:262] == b"ustar":
        raise _not_supported(path, "a tar archive", "unpack it")
    wide = byte_order_mark(start)[1] or suggest_encoding(start[:4])
    if not wide and _is_binary(start[: 1 << 12]):
        raise _not_supported(path, "binary data of no known format", None)


def _is_binary(start: bytes) -> bool:
    """Whether bytes of zero are no slip within the values of text."""
    count = start.count(0)
    rest = start.translate(None, _CONTROLS)
    return count * _MOST_ZERO > len(start) or (count > 0 and len(rest) + count < len(start))


_MOST_ZERO = 4
"""Of so many bytes of text one may be zero."""
_PROSE = re.compile(
    r"(readme|licen[cs]e|notice|authors|changelog|copying|makefile)(\.\w+)?"
    r"|.*\.(md|rst|adoc|py|sh|sql|r|yml|yaml|toml|ini|cfg|conf|ipynb|js|css)",
    re.IGNORECASE,
)
"""Names of what lies beside data: its content may look like a table or like JSON."""


def is_prose(path: str) -> bool:
    """Whether a file is text or code by its name, and lies beside data."""
    return _PROSE.fullmatch(Path(path).name) is not None


def _inspect_text(file: FileState, files: FileBytes) -> InspectedFile:
    if is_prose(file.path):
        raise _not_supported(file.path, "text or code, by its name", None)
    with open_unpacked(files, file) as (unpacked, compression):
        raw = unpacked.peek(_ENCODING_BYTES)
    found = InspectedFile(file, compression=compression)
    _check_supported(file.path, raw)
    encoding = suggest_encoding(raw)
    codec = str(encoding.value) if encoding else None
    named = codec or (byte_order_mark(raw)[1] or "utf-8").upper()
    found = replace(found, encoding=named, guesses=(encoding,) if encoding else ())
    with open_text(files, file, codec) as text:
        start = peek(text.stream, START_BYTES + 1)
    whole = len(start) <= START_BYTES
    some = (one.inspect(found, start[:START_BYTES], files, whole=whole) for one in INSPECTIONS)
    return next(one for one in some if one is not None)
