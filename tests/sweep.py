"""Walk a folder of files through inspect, plan and sync, and compare what was loaded with what
independent readers read: `python -m tests.sweep FOLDER`.

Each file is a table, with the settings that `lakeload inspect` writes. Readers are csv, json,
pyarrow, fastavro and pyorc (`pip install pyorc`). Exit code 1 where a file was loaded with other
values, or ended a command: 70, a signal, or no end.

With `--init` each folder is loaded with the pipeline that `lakeload init --path FOLDER` writes, as
it is. Python's csv then reads all records of the CSV files: with the separator, the quote and the
encoding of that pipeline, and without what it skips or takes for a header. Exit code 1 also where a
record or a header is not in the table, and `init` printed no guess that says so (`lost`).
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
import yaml

from lakeload.demo.aws import EmbeddedAws, seed_lake
from tests.e2e.command import environment
from tests.other_readers import Unreadable, plain_number, read, same
from tests.servers.ministack import AwsServer, Lake

BATCH = 40
"""Tables of a sync."""
SECONDS = 900
Verdict = Literal["equal", "refused", "unread", "guessed", "different", "lost", "crashed"]
"""`unread`: it was loaded, and the other reader refuses the file. `guessed`: a record or the header
is not in the table, and a guess was printed that says so."""
FAULTS: tuple[Verdict, ...] = ("different", "lost", "crashed")
TAKEN = ("skip_rows", "comment", "header")
"""Options with which a record is not a row."""


@dataclass
class Swept:
    """A file, the settings of its table, and what became of it."""

    path: Path
    table: dict[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    why: str = ""

    def ends(self, verdict: Verdict, why: str = "") -> None:
        """Note what became of it."""
        self.verdict, self.why = verdict, " ".join(why.split())


@dataclass(frozen=True)
class Ended:
    """A command that has ended, or was stopped (`code` None)."""

    code: int | None
    out: str
    err: str

    @property
    def crashed(self) -> bool:
        """Whether it ended in no way that is documented."""
        return self.code is None or self.code < 0 or self.code == 70 or self.code >= 128

    @property
    def document(self) -> dict[str, Any]:
        """What it printed as JSON; {} where it is none."""
        try:
            found: dict[str, Any] = json.loads(self.out)
        except ValueError:
            return {}
        return found

    @property
    def last(self) -> str:
        """The end of what it wrote for people."""
        return f"exit code {self.code}: {self.err[-300:]}"


def run(folder: Path, *arguments: str, **variables: str) -> Ended:
    """Run `lakeload` with arguments in a folder."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lakeload", *arguments, "--output", "json"],
            cwd=folder,
            env=variables or None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(None, "", f"it did not end in {SECONDS} s")
    return Ended(done.returncode, done.stdout, done.stderr)


def inspect(swept: Swept, number: int, folder: Path) -> None:
    """Ask `lakeload inspect` for the settings of a file."""
    ended = run(folder, "inspect", str(swept.path))
    if ended.crashed:
        return swept.ends("crashed", f"inspect: {ended.last}")
    tables = ended.document.get("tables", [])
    if len(tables) != 1 or tables[0]["error"] or not tables[0]["format"]:
        errors = [table["error"] for table in tables if table["error"]]
        message = str(errors[0].get("message")) if errors else ended.last
        return swept.ends("refused", f"inspect: {message}")
    (told,) = tables
    swept.table = {
        "table": f"t{number:05}",
        "path": str(swept.path),
        "format": told["format"],
        "options": told["options"],
    }
    if told["rename"]:
        swept.table["columns"] = {"rename": told["rename"]}
    return None


def load(lake: Lake, batch: Sequence[Swept], folder: Path) -> None:
    """Plan and sync a batch of tables; where the command itself ends, one table at a time."""
    folder.mkdir()
    source = {"type": "FILES", "format": batch[0].table["format"]}
    pipeline = lake.write_pipeline(folder, tables=[one.table for one in batch], source=source)
    variables = environment(lake, folder)
    planned = run(folder, "plan", pipeline.name, **variables)
    loaded = run(folder, "sync", pipeline.name, **variables)
    results = {table["table"]: table for table in loaded.document.get("tables", [])}
    if (planned.crashed or loaded.crashed) and len(batch) > 1:
        for number, one in enumerate(batch):
            load(lake, [one], folder / str(number))
        return
    for one in batch:
        if planned.crashed or loaded.crashed:
            which = planned if planned.crashed else loaded
            one.ends("crashed", which.last)
        elif (result := results.get(one.table["table"])) is None:
            one.ends("refused", loaded.last)
        elif result["status"] not in ("LOADED", "NO_OP"):
            one.ends("refused", str((result["error"] or {}).get("message")))
        else:
            compare(one, loaded_rows(lake, result))


def loaded_rows(lake: Lake, result: dict[str, Any]) -> pa.Table | None:
    """Return the rows of a table in their order; None for a load without files."""
    parts = []
    for file in result["files"]:
        body = lake.server.s3.get_object(Bucket=lake.seeded.bucket, Key=file["key"])["Body"]
        parts.append(pq.read_table(pa.BufferReader(body.read())))
    if not parts:
        return None
    rows = pa.concat_tables(parts, promote_options="permissive").sort_by("_supa_index")
    return rows.select([name for name in rows.column_names if not name.startswith("_supa_")])


def compare(swept: Swept, loaded: pa.Table | None) -> None:
    """Compare what was loaded of a file with what another reader reads."""
    try:
        expected = read(swept.path, swept.table["format"], swept.table["options"])
    except Unreadable as error:
        return swept.ends("unread", str(error))
    if loaded is None:
        if expected.rows:
            return swept.ends("different", f"nothing was loaded of {len(expected.rows)} rows")
        return swept.ends("equal")
    if loaded.num_rows != len(expected.rows):
        why = f"{loaded.num_rows} rows were loaded of {len(expected.rows)}"
        return swept.ends("different", why)
    columns = expected.columns(loaded.column_names)
    for name, column in zip(loaded.column_names, columns, strict=False):
        if not pt.is_string(loaded[name].type):
            column = [plain_number(value, swept.table["options"]) for value in column]
        for number, (own, other) in enumerate(zip(loaded[name].to_pylist(), column, strict=True)):
            if not same(other, own):
                why = f"row {number + 1}, `{name}`: {own!r:.60} was loaded of {other!r:.60}"
                return swept.ends("different", why)
    return swept.ends("equal")


def sweep(files: Sequence[Path], folder: Path) -> Iterator[Swept]:
    """Yield what became of each file, in batches."""
    with EmbeddedAws(folder / "aws") as embedded:
        server = AwsServer(embedded.endpoint)
        for start in range(0, len(files), BATCH):
            batch = [Swept(path) for path in files[start : start + BATCH]]
            for number, one in enumerate(batch):
                inspect(one, number, folder)
            bucket = f"lake-{secrets.token_hex(6)}"
            lake = Lake(server, seed_lake(server.admin, bucket=bucket, prefix="sweep"))
            if left := [one for one in batch if one.verdict is None]:
                load(lake, left, folder / f"batch{start}")
            lake.empty()
            yield from batch


def sweep_init(folders: Sequence[Path], folder: Path) -> Iterator[Swept]:
    """Yield what became of the CSV files of folders, loaded with the pipelines of `init`."""
    with EmbeddedAws(folder / "aws") as embedded:
        server = AwsServer(embedded.endpoint)
        for number, one in enumerate(folders):
            bucket = f"lake-{secrets.token_hex(6)}"
            lake = Lake(server, seed_lake(server.admin, bucket=bucket, prefix="sweep"))
            yield from load_as_found(lake, one, folder / f"init{number}")
            lake.empty()


def load_as_found(lake: Lake, files: Path, folder: Path) -> Iterator[Swept]:
    """Run `init` and `sync` for a folder, and yield each table with one of its files."""
    variables = environment(lake, folder)
    place = {"bucket": lake.seeded.bucket, "endpoint-url": lake.server.endpoint}
    flags = [f"--{name}={value}" for name, value in place.items()]
    flags += ["--region=us-east-1", "--credentials=DEFAULT", "--no-input", f"--path={files}"]
    made = run(folder.parent, "init", folder.name, *flags, **variables)
    if made.crashed or made.code:
        whole = Swept(files)
        whole.ends("crashed" if made.crashed else "refused", f"init: {made.last}")
        yield whole
        return
    lake.write_destination(folder)  # with the role that the emulator demands
    pipeline = yaml.safe_load((folder / "pipeline.yml").read_text(encoding="utf-8"))
    loaded = run(folder, "sync", "pipeline.yml", **variables)
    results = {table["table"]: table for table in loaded.document.get("tables", [])}
    for warning in made.document["warnings"]:
        if "is left out" in warning:
            yield Swept(files / "(left out)", verdict="refused", why=f"init: {warning}")
    for table in pipeline["tables"]:
        table = with_source(table, pipeline["source"])
        if table["format"] != "CSV":
            continue
        swept = Swept(files / table["table"], table)
        result = results.get(table["table"])
        if loaded.crashed:
            swept.ends("crashed", loaded.last)
        elif result is None or result["status"] not in ("LOADED", "NO_OP"):
            error = result["error"] if result else None
            swept.ends("refused", str(error["message"]) if error else loaded.last)
        else:
            guesses = made.document["guesses"]
            told = {one["option"] for one in guesses if one["table"] == table["table"]}
            compare_records(swept, files_of(table, folder), loaded_rows(lake, result), told)
        yield swept


def with_source(table: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Return a table with the format and the options that it has from `source`."""
    table_format = table.get("format", source["format"])
    shared = source.get("options", {}) if table_format == source["format"] else {}
    return {**table, "format": table_format, "options": shared | table.get("options", {})}


def files_of(table: dict[str, Any], folder: Path) -> list[Path]:
    """Return the files of a table of a pipeline in a folder."""
    paths = table["path"] if isinstance(table["path"], list) else [table["path"]]
    found: list[Path] = []
    for path in paths:
        named = (
            [folder / path]
            if (folder / path).exists()
            else sorted(Path("/").glob(str(folder / path)[1:]))
        )
        for name in named:
            inside = sorted(name.rglob("*")) if name.is_dir() else [name]
            found += [file for file in inside if file.is_file()]
    return found


def compare_records(
    swept: Swept, files: Sequence[Path], loaded: pa.Table | None, told: Collection[str]
) -> None:
    """Compare the rows of a table, and its header, with all records of its files. `told` are the
    options of the guesses that `init` printed."""
    options = swept.table["options"]
    raw = {name: value for name, value in options.items() if name not in TAKEN}
    try:
        records = [row for file in files for row in read(file, "CSV", raw).rows]
        firsts = [row for file in files for row in read(file, "CSV", raw).rows[:1]]
    except Unreadable as error:
        return swept.ends("unread", str(error))
    heads = firsts if options.get("header") else []
    rows = loaded.num_rows if loaded is not None else 0
    why, needed = "", {"header"}
    if rows + len(heads) != len(records):
        why = f"{rows} rows and {len(heads)} headers are in the table of {len(records)} records"
        needed = {name for name in ("skip_rows", "comment") if name in options} or needed
    elif (taken := looks_like_data(heads, records)) is not None:
        why = f"the header has `{taken}`, as the rows have"
    elif not options.get("header") and has_header(records):
        why = f"the first record {records[0]} is a row, and looks like a header"
    if why:
        return swept.ends("guessed" if needed <= set(told) else "lost", why)
    if len(files) == 1:
        swept.path = files[0]
        return compare(swept, loaded)
    return swept.ends("equal")


def looks_like_data(heads: Sequence[Any], records: Sequence[Any]) -> str | None:
    """Return a number in a header that stands above numbers; None where there is none."""
    for head in heads:
        for place, value in enumerate(head):
            below = [row[place] for row in records[1:] if place < len(row) and row[place]]
            if value and is_number(value) and below and all(map(is_number, below)):
                return str(value)
    return None


def has_header(records: Sequence[Any]) -> bool:
    """Return whether the first record is text without a number, and one of its columns has nothing
    but numbers below."""
    if len(records) < 2 or not all(records[0]) or any(map(is_number, records[0])):
        return False
    below = [[row[n] for row in records[1:] if n < len(row)] for n in range(len(records[0]))]
    return any(values and all(v and is_number(v) for v in values) for values in below)


def is_number(text: str) -> bool:
    """Return whether text is a number, in one of the ways in which Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print; return 1 when a file was loaded differently or ended a command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("folder", type=Path, help="every file below it is swept")
    parser.add_argument("--most-bytes", type=int, default=20_000_000, help="of a file")
    parser.add_argument("--init", action="store_true", help="load with the pipelines of `init`")
    parser.add_argument("--all", action="store_true", help="print refused and unread files too")
    wanted = parser.parse_args(arguments)
    files = [path for path in sorted(wanted.folder.rglob("*")) if path.is_file()]
    files = [path for path in files if 0 < path.stat().st_size <= wanted.most_bytes]
    shown = get_args(Verdict) if wanted.all else FAULTS
    with tempfile.TemporaryDirectory(prefix="lakeload-sweep-") as place:
        counts: Counter[str] = Counter()
        folders = sorted({path.parent for path in files})
        found = sweep_init(folders, Path(place)) if wanted.init else sweep(files, Path(place))
        for one in found:
            counts[str(one.verdict)] += 1
            if one.verdict in shown:
                sys.stdout.write(
                    f"{one.verdict}: {one.path.relative_to(wanted.folder)}: {one.why}" + "\n"
                )
    told = ", ".join(f"{counts[name]} {name}" for name in get_args(Verdict))
    sys.stdout.write(f"{len(files)} files: {told}" + "\n")
    return 1 if any(counts[name] for name in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
