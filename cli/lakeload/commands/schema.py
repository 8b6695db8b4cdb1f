"""`lakeload schema`: JSON Schema for editors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakeload.documents.json_schema import json_schema
from lakeload.ui.console import show_json


class DocumentKind(StrEnum):
    """The two documents."""

    DESTINATION = "destination"
    PIPELINE = "pipeline"


def schema(
    kind: Annotated[DocumentKind, typer.Argument(help="The document to describe.")],
) -> None:
    """Print the JSON Schema of a document, for editors that complete and check.

    Put `# yaml-language-server: $schema=FILE` on the first line of a document.
    """
    show_json(json_schema(kind.value))
