"""Reading of the document that a command is given, with a sign of life."""

from __future__ import annotations

import os
from pathlib import Path

from lakeload.documents.load import DestinationDocument, PipelineDocument, load_either
from lakeload.ui import console
from lakeload.ui.display import Phases
from lakeload.ui.progress import PHASES


def read_document(file: Path, destination: Path | None) -> PipelineDocument | DestinationDocument:
    """Return a pipeline or a destination. Raises `InvalidDocuments`."""
    with Phases(console.err, PHASES["documents"], quiet=console.silent()):
        return load_either(file, os.environ, destination)
