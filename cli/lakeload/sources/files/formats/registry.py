"""The text formats that inspection tells apart."""

from __future__ import annotations

from collections.abc import Mapping

from lakeload.sources.files.formats.base import TextInspection
from lakeload.sources.files.formats.csv.inspection import CsvInspection
from lakeload.sources.files.formats.json.inspection import JsonInspection

INSPECTIONS: tuple[TextInspection, ...] = (JsonInspection(), CsvInspection())
"""In the order in which they are asked: any text may be CSV."""

INSPECTION_OF: Mapping[str, TextInspection] = {
    name: inspection for inspection in INSPECTIONS for name in inspection.names
}
