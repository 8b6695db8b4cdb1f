"""Writes docs/configuration.md from the models: `python docs/configuration.py`."""

from __future__ import annotations

from pathlib import Path

from lakeload.documents.reference import reference_page

if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(reference_page(), encoding="utf-8")
