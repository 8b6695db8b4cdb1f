"""What is done with hostile inputs: each target makes one from a seed, and lets a part of a command
have it. Any exception but a `LakeloadError` is a finding."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, get_args

import yaml
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.sources.files.inspected_tables import inspect_paths
from lakeload.sources.files.inspection import inspect_file
from lakeload.ui.inspect import to_document
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.contract.spec import FileFormatName, FilesInput
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS, TYPED_FORMATS
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.part_sizes import ONE_TASK
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from tests.faults.inputs.mutants import mutant
from tests.unit.commands.test_past_runs import write_folder
from tests.unit.formats import test_kept_records as kept
from tests.unit.formats.test_plan_columns import plan_of
from tests.unit.sources.files.formats.csv.test_table import here
from tests.unit.sources.files.typed.typed_files import read_rows

FORMATS: tuple[FileFormatName, ...] = get_args(FileFormatName)
FILES = FileBytes()


class Bug(AssertionError):
    """A command that calls what happened a bug of its own."""


def _put(folder: Path, content: bytes, name: str = "a.data") -> FileState:
    path = folder / name
    path.write_bytes(content)
    return FileState(str(path), len(content), 0)


def inspect(random: Random, folder: Path) -> None:
    """`lakeload inspect` and `init` with a damaged file."""
    found = inspect_file(_put(folder, mutant(random).content), FILES)
    if found.error is not None and "a bug in lakeload" in str(found.error):
        raise Bug(str(found.error))


def load(random: Random, folder: Path) -> None:
    """The readers of `lakeload sync` with a damaged file, now and then under another format."""
    seed = mutant(random)
    file = _put(folder, seed.content)
    kind = seed.format if random.random() < 0.9 else random.choice(FORMATS)
    policy: Any = random.choice(("FAIL", "NULL", "QUARANTINE"))
    if kind in TEXT_FORMATS:
        reading = TEXT_FORMATS[kind].reading(_options(kind))
        splits = TextFiles((file,), reading, on_bad_value=policy).split(here, ONE_TASK).splits
        for part in splits.parts:
            for _ in splits.read(part):
                pass
        return
    given = TYPED_FORMATS[kind]
    read_rows(given.schemas([file], FILES), given.reader(FILES), on_bad_value=policy)


def _options(kind: FileFormatName) -> dict[str, str]:
    return {"header": "true"} if kind == "CSV" else {}


def plan(random: Random, folder: Path) -> None:
    """`lakeload plan` with a damaged file."""
    seed = mutant(random)
    file = _put(folder, seed.content)
    plan_of(Path(file.path), seed.format, _options(seed.format))


_COMMANDS = (
    ("validate", "pipeline.yml", "--output", "json"),
    ("validate", "destination.yml"),
    ("plan", "pipeline.yml"),
    ("sync", "pipeline.yml", "--output", "json"),
    ("runs", "pipeline.yml"),
    ("recover", "pipeline.yml", "--output", "json"),
    ("policy", "pipeline.yml", "--principal", "arn:aws:iam::123456789012:role/loader"),
)
_ENVIRONMENT = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_ACCESS_KEY_ID": None,
    "AWS_SECRET_ACCESS_KEY": None,
}
_DOCUMENTS: dict[str, dict[str, Any]] = {
    "pipeline.yml": {
        "version": 1,
        "name": "shop",
        "destination": "destination.yml",
        "source": {"type": "FILES", "format": "CSV", "options": {"header": True}},
        "tables": [{"table": "orders", "path": "a.csv", "columns": {"types": {"id": "bigint"}}}],
    },
    "destination.yml": {
        "version": 1,
        "bucket": "lake",
        "region": "us-east-1",
        "prefix": "p",
        "endpoint_url": "http://127.0.0.1:9",
        "table_format": "PARQUET",
    },
}
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**400, 1e308, float("nan"), "", " ", "\0", "\ud800", "a" * 5000),
    *([], {}, [[]], {"a": {}}, "${X}", "${file:/dev/zero}", "../..", "**", "[", "{a,b}", "s3://"),
    *("/dev/zero", "file:///", "1GiB", "CSV", "ICEBERG", "array<" * 50, "2024-13-01", "*/" * 400),
)


def configuration(random: Random, folder: Path) -> None:
    """A command with a damaged pipeline or destination, on a machine without keys of AWS."""
    (folder / "a.csv").write_text("id\n1\n")
    damaged = random.choice(tuple(_DOCUMENTS))
    for name, document in _DOCUMENTS.items():
        text = yaml.safe_dump(document)
        if name == damaged:
            text = _damaged(random, document)
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        ended = CliRunner(env=_ENVIRONMENT).invoke(app, random.choice(_COMMANDS))
    finally:
        os.chdir(before)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    if ended.exit_code == ExitCode.BUG:
        raise Bug(ended.output)


def _damaged(random: Random, document: dict[str, Any]) -> str:
    if random.random() < 0.3:
        text = yaml.safe_dump(document)
        at = random.randrange(len(text))
        return (
            text[:at]
            + random.choice(("&a ", "*a", "\t", "\0", "]", "- ", ": ", "!!x "))
            + text[at:]
        )
    copy: Any = yaml.safe_load(yaml.safe_dump(document))
    _damage(random, copy)
    return yaml.safe_dump(copy, allow_unicode=True)


def _damage(random: Random, place: Any) -> None:
    """Put another value somewhere into a document."""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = random.choice(keys)
        if isinstance(place[key], dict | list) and random.random() < 0.6:
            place = place[key]
            continue
        place[key] = random.choice(_VALUES)
        break


_NAMES = (
    *(b"a.csv", b"b.csv", b"caf\xe9.csv", b"day=1", b"day=%00", b"_x", b".y", b"a[1].csv"),
    *(b"new\nline.csv", b"{x,y}.csv", b"*.csv", b" ", b"sub", b"x" * 200, b"\xf0\x9f\x8d\x8e.csv"),
)
_PATHS = ("", "/*", "/**", "/*.csv", "/**/*.csv", "/sub", "/*/*.csv", "/a.csv", "/[a-b].csv", "/?")


def file_system(random: Random, folder: Path) -> None:
    """Listing and inspection of a folder with links, pipes, devices and odd names."""
    _grow(random, folder, depth=0)
    path = f"{folder}{random.choice(_PATHS)}"
    options = {"recursiveFileLookup": "true"} if random.random() < 0.5 else {}
    with suppress(LakeloadError):
        list_files(FilesInput("CSV", (path,), options))
    tables = inspect_paths((path,), folder, FILES, lambda found: ())
    to_document(tables)
    for table in tables:
        if table.error is not None and "a bug in lakeload" in str(table.error):
            raise Bug(str(table.error))
        for written in table.paths:
            written.encode()


_LINKS = (".", "..", "a.csv", "gone", "/dev/null", "sub")
_CONTENTS = (b"", b"id\n1\n", b"id,n\n1,2\n", b"\0\0")


def _grow(random: Random, folder: Path, depth: int) -> None:
    for name in random.sample(_NAMES, random.randrange(1, 6)):
        path = folder / os.fsdecode(name)
        match random.randrange(9):
            case 0:
                path.symlink_to(random.choice((*_LINKS, path.name)))
            case 1:
                os.mkfifo(path)
            case 2 | 3 if depth < 3:
                path.mkdir()
                _grow(random, path, depth + 1)
                path.chmod(random.choice((0o755, 0o755, 0o755, 0)))
            case _:
                path.write_bytes(random.choice(_CONTENTS))


def stored_objects(random: Random, folder: Path) -> None:
    """What commands read of a lake: damaged records, checkpoints, lists of files and states."""
    path = random.choice(kept.FILES)
    copy = folder / path.name
    copy.write_bytes(_damaged_json(random, path.read_bytes()))
    kept.read(copy)


def run_folders(random: Random, folder: Path) -> None:
    """`lakeload runs` with damaged files in the folders of runs."""
    for number in range(2):
        own = write_folder(folder, str(number), result=random.choice((None, "SUCCEEDED")))
        (own / "events.jsonl").write_text('{"event": "started"}\n')
        path = random.choice(sorted(own.iterdir()))
        path.write_bytes(_damaged_json(random, path.read_bytes()))
    options = random.choice(((), ("--output", "json"), ("--limit", "1"), ("--table", "o*")))
    ended = CliRunner(env={"LAKELOAD_RUN_DIR": str(folder)}).invoke(app, ("runs", *options))
    if ended.exit_code:
        raise ended.exception or Bug(ended.output)


def _damaged_json(random: Random, content: bytes) -> bytes:
    """Return a document with another value somewhere, or other bytes."""
    if random.random() < 0.3:
        at = random.randrange(len(content))
        return content[:at] + random.randbytes(random.randrange(4)) + content[at + 1 :]
    document: Any = json.loads(content)
    _damage(random, document)
    return json.dumps(document).encode()


TARGETS: dict[str, Callable[[Random, Path], None]] = {
    "inspect": inspect,
    "load": load,
    "plan": plan,
    "configuration": configuration,
    "file systems": file_system,
    "stored objects": stored_objects,
    "run folders": run_folders,
}
