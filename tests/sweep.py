"""Walk a folder of files through inspect, plan and sync, and compare what was loaded with what
independent readers read: `python -m tests.sweep FOLDER`.

Each file is a table, with the settings that `lakeload inspect` writes. Readers are csv, json,
pyarrow, fastavro and pyorc (`pip install pyorc`). Exit code 1 where a file was loaded with other
values, or ended a command: 70, a signal, or no end.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload.demo.aws import EmbeddedAws, seed_lake
from tests.e2e.command import environment
from tests.other_readers import Unreadable, plain_number, read, same
from tests.servers.ministack import AwsServer, Lake

BATCH = 40
"""Tables of a sync."""
SECONDS = 900
Verdict = Literal["equal", "refused", "different", "crashed", "unread"]
"""`unread`: it was loaded, and the other reader refuses the file."""


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print; return 1 when a file was loaded differently or ended a command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("folder", type=Path, help="every file below it is swept")
    parser.add_argument("--most-bytes", type=int, default=20_000_000, help="of a file")
    parser.add_argument("--all", action="store_true", help="print refused and unread files too")
    wanted = parser.parse_args(arguments)
    files = [path for path in sorted(wanted.folder.rglob("*")) if path.is_file()]
    files = [path for path in files if 0 < path.stat().st_size <= wanted.most_bytes]
    shown = ("different", "crashed") + (("refused", "unread") if wanted.all else ())
    with tempfile.TemporaryDirectory(prefix="lakeload-sweep-") as place:
        counts: Counter[str] = Counter()
        for one in sweep(files, Path(place)):
            counts[str(one.verdict)] += 1
            if one.verdict in shown:
                sys.stdout.write(
                    f"{one.verdict}: {one.path.relative_to(wanted.folder)}: {one.why}" + "\n"
                )
    order = ("equal", "refused", "unread", "different", "crashed")
    sys.stdout.write(
        f"{len(files)} files: " + ", ".join(f"{counts[name]} {name}" for name in order) + "\n"
    )
    return 1 if counts["different"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
