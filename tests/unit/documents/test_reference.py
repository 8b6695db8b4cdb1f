"""docs/configuration.md tells what the models accept."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from lakeload.documents.destination import Destination
from lakeload.documents.explain import sections
from lakeload.documents.pipeline import pipeline_model
from lakeload.sources.registry import SOURCES
from tests.reference import PAGE, reference_page, type_name


def test_configuration_page_equals_the_models() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), "run `python -m tests.reference`"


@pytest.mark.parametrize("model", [Destination, *map(pipeline_model, SOURCES.values())])
def test_every_setting_has_a_row_with_a_meaning_and_a_type(model: type[BaseModel]) -> None:
    rows = [line.split(" | ") for line in reference_page().splitlines() if line.startswith("| `")]
    meanings = {(row[0].strip("| `"), row[1]): row[-1].strip("| ") for row in rows}
    for path, section in sections(model):
        for name, field in section.model_fields.items():
            assert meanings[(name, type_name(field))], f"{path}.{name}"
