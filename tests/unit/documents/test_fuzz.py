"""Whatever a document holds, it is valid or has problems; nothing else happens."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from lakeload.config.problems import has_errors
from lakeload.documents.destination import Destination
from lakeload.documents.explain import sections
from lakeload.documents.load import check, inspect_all
from lakeload.documents.pipeline import pipeline_model
from lakeload.documents.spec import table_specs
from lakeload.sources.registry import SOURCES
from lakeload.ui.problems import problems_json, problems_text
from tests.environments import many
from tests.unit.documents.documents import PIPELINE, TABLES, pipeline

MODELS: list[type[BaseModel]] = [Destination, *map(pipeline_model, SOURCES.values())]
KEYS = sorted(
    {name for model in MODELS for _, section in sections(model) for name in section.model_fields}
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.text(max_size=12)
    | st.sampled_from(["${A}", "${", "FILES", "CSV", "PARQUET", "NULL", "s3://x", "a.csv", "1GiB"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
documents = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
quick = settings(
    max_examples=many(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)


def examine(text: str | bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "d.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
        found = check([path], {"A": "b"})
        shown = problems_text(found, 80).plain
        assert problems_json(found) is not None
        assert shown.replace("\n", "").isprintable()
        assert all(problem.message for problem in found)


@quick
@given(documents)
def test_any_data_is_examined(document: dict[str, Any]) -> None:
    examine(yaml.safe_dump(document, allow_unicode=True))


@quick
@given(documents)
def test_any_settings_of_a_pipeline_are_examined(document: dict[str, Any]) -> None:
    base = yaml.safe_load(PIPELINE + TABLES)

    examine(yaml.safe_dump({**base, **document}, allow_unicode=True))


@quick
@given(documents, st.integers(0, 1), st.text(max_size=5))
def test_any_settings_of_a_table_are_examined(
    document: dict[str, Any], index: int, name: str
) -> None:
    base = yaml.safe_load(PIPELINE + TABLES)
    base["tables"].append({"table": name, "path": "x"})
    base["tables"][index].update(document)

    examine(yaml.safe_dump(base, allow_unicode=True))


@quick
@given(st.text(alphabet="ab:-{}[],\"'#&*!|>%@`\n\t ?~<0123456789$", max_size=60))
def test_any_text_is_examined(text: str) -> None:
    examine(text)


@quick
@given(st.binary(max_size=60))
def test_any_bytes_are_examined(data: bytes) -> None:
    examine(data)


@quick
@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=6))
def test_tables_of_any_name_have_targets_of_their_own_or_a_problem(names: list[str]) -> None:
    with TemporaryDirectory() as folder:
        tables = [{"table": name, "path": "x.csv"} for name in names]
        text = PIPELINE + yaml.safe_dump({"tables": tables}, allow_unicode=True)
        path = Path(folder) / "pipeline.yaml"
        path.write_text(text, encoding="utf-8")
        [inspection] = inspect_all([path], {})
        if not has_errors(inspection.problems):
            specs = table_specs(pipeline(Path(folder), text))
            assert len({spec.target.lower() for spec in specs}) == len(names)
