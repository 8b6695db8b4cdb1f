"""OpenLineage's own JSON Schemas (tests/cases/openlineage) as the judge of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parent / "cases" / "openlineage"


@cache
def _registry() -> Registry[Any]:
    documents = [json.loads(path.read_bytes()) for path in SCHEMAS.glob("*.json")]
    resources = [(one["$id"], Resource.from_contents(one)) for one in documents]
    return Registry().with_resources(resources)


def check(event: Mapping[str, Any]) -> None:
    """Raise for an event, or a facet of it, that does not keep to the schema that it names."""
    _validate(event, event["schemaURL"])
    facets = [event["run"].get("facets"), event["job"].get("facets")]
    for dataset in (*event["inputs"], *event["outputs"]):
        facets += [dataset.get(name) for name in ("facets", "inputFacets", "outputFacets")]
    for found in facets:
        for facet in (found or {}).values():
            assert facet["_producer"] == event["producer"]
            _validate(facet, facet["_schemaURL"])


def _validate(found: Any, url: str) -> None:
    # A URL that no schema has here is an error too.
    validator = Draft202012Validator({"$ref": url}, registry=_registry())
    validator.validate(found)
