"""Answers → the two documents."""

from __future__ import annotations

from lakeload.init.answers import Answers
from lakeload.init.destination import destination_text
from lakeload.init.pipeline import pipeline_text

DESTINATION, PIPELINE, DOTENV, GITIGNORE = (
    "destination.yml",
    "pipeline.yml",
    ".env",
    ".gitignore",
)


def documents(answers: Answers) -> dict[str, str]:
    """Return the text of each document by its file's name."""
    return {DESTINATION: destination_text(answers), PIPELINE: pipeline_text(answers)}
