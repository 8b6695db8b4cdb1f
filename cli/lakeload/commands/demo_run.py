"""One demo on its way: where it lives, where it shows, and what it has seen."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from lakeload.demo.aws import SeededLake
from lakeload.demo.lake import fetch_objects
from lakeload.demo.steps import run_command
from lakeload.ui import demo as screen
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.storage.objects import Objects

BUCKET, PREFIX, SCHEMA = "demo-lake", "demo", "shop"


@dataclass
class Demo:
    """What the tours of both table formats share."""

    folder: Path
    console: Console
    lake: SeededLake
    documents: Mapping[str, str]
    """By the names of the files, which are in `folder`."""
    destination: DestinationSpec
    as_json: bool
    commands: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Open the lake with the destination's own identity."""
        self.session = AwsSession(self.destination, label="demo")
        self._objects = Objects(self.session, self.destination)

    def introduce(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show the embedded AWS and the documents."""
        screen.show_heading(self.console, "An AWS of its own, which enforces IAM")
        screen.show_facts(self.console, facts)
        screen.show_heading(self.console, "Two documents")
        for name, text in self.documents.items():
            screen.show_document(self.console, name, text)

    def run(self, *arguments: str) -> None:
        """Show and run one command. Raises `LoadFailed` when it does not end well."""
        screen.show_command(self.console, arguments)
        ended = run_command(arguments, self.folder, sys.stderr if self.as_json else None)
        command = " ".join(("lakeload", *arguments))
        seconds = round(ended.seconds, 1)
        self.commands.append({"command": command, "exit_code": ended.exit_code, "seconds": seconds})
        if ended.exit_code:
            raise LoadFailed(f"in the demo, `{command}` ended with exit code {ended.exit_code}")

    def load(self, job: str, *, gathered: bool = False) -> None:
        """Sync once, then show what that added to the lake; `gathered` by kind of file."""
        self.run("sync", "pipeline.yml", "--job-id", job)
        entries = fetch_objects(self._objects, PREFIX, self.folder / "lake")
        older = self.keys or {entry.key for entry in entries}
        leaves = [screen.TreeLeaf(e.key, e.size, new=e.key not in older) for e in entries]
        self.keys = {entry.key for entry in entries}
        screen.show_heading(self.console, "What is in the lake now")
        shown = screen.gathered(leaves) if gathered else leaves
        screen.show_tree(self.console, f"s3://{BUCKET}/", shown)
