"""Selection of tables by FILE and --table, for the commands that operate on loaded tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lakeload.commands.source_tables import with_found_tables
from lakeload.documents.load import DestinationDocument, PipelineDocument, load_either
from lakeload.documents.named_files import NamedFiles
from lakeload.formats.base import FormatCommands
from lakeload.formats.registry import commands_of
from lakeload.formats.tables import TablesRequest
from lakeload.ui import console
from lakeload.ui.display import Phases
from lakeload.ui.progress import PHASES

_DOING = {"runs": "reading the history of", "recover": "recovering", "reset": "resetting"}

Document = PipelineDocument | DestinationDocument


def request_of(
    command: str,
    files: NamedFiles,
    globs: Sequence[str],
    option: str = "--table",
    *,
    phases: Phases,
    read: Callable[[Path, Mapping[str, str], Path | None], Document] = load_either,
) -> tuple[FormatCommands, TablesRequest]:
    """Return the commands of the tables' format, and the tables that files and globs mean.

    `option` is what the globs were given with; `phases` are shown until the caller ends them.
    Raises `InvalidDocuments`, and as finding the tables of the source does.
    """
    phases.begin(PHASES["documents"])
    document = read(files.file, os.environ, files.destination)
    document = with_found_tables(document, command, phases=phases)
    phases.begin(f"{_DOING[command]} the tables")
    request = TablesRequest(command, document, globs, console.note, option)
    return commands_of(document.destination.model.table_format), request
