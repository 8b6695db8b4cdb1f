"""Documents that tests begin with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from jsonschema import Draft202012Validator

from lakeload.commands.schema import json_schema
from lakeload.config.problems import Problem
from lakeload.documents.load import PipelineDocument, check, load_pipeline

DESTINATION = "version: 1\nbucket: my-data-lake\nregion: us-east-1\n"
PIPELINE = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source: {type: FILES, format: CSV}
"""
TABLES = "tables:\n  - {table: orders, path: orders.csv}\n"


def problems_of(folder: Path, text: str | bytes, **environment: str) -> list[Problem]:
    """Write the text to a file and return every problem of it."""
    path = folder / "document.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return check([path], environment)


def messages(problems: list[Problem]) -> list[str]:
    """Return the messages alone."""
    return [problem.message for problem in problems]


def pipeline(folder: Path, text: str, **environment: str) -> PipelineDocument:
    """Write the text to a file and return the valid pipeline in it."""
    path = folder / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    return load_pipeline(path, environment)


@cache
def validator(kind: Literal["destination", "pipeline"]) -> Draft202012Validator:
    """Return what validates documents by the JSON Schema, as an editor does."""
    return Draft202012Validator(json_schema(kind))
