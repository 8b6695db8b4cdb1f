"""One file → a tree of its settings, and which of the two documents it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from lakeload.config.document import Branch, TreeReader, plain_data
from lakeload.config.page import Page, Unreadable, read_page
from lakeload.config.problems import Problem
from lakeload.config.yaml_nodes import read_nodes
from lakeload.config.yaml_syntax import YamlRefused
from lakeload.documents.destination import Destination
from lakeload.documents.pipeline import Pipeline

Kind = Literal["destination", "pipeline"]


def parse(
    path: Path, environment: Mapping[str, str], problems: list[Problem]
) -> tuple[Page, Branch] | None:
    """Return the file's text and tree, None where it has none.

    The problems it adds are those of YAML, not of the models.
    """
    try:
        page = read_page(path)
    except Unreadable as unreadable:
        problems.append(unreadable.problem)
        return None
    reader = TreeReader(page, environment, problems)
    try:
        node = read_nodes(page.text)
        tree = None if node is None else reader.read(node)
    except YamlRefused as refused:
        page.hide_suspicious()
        problems.append(
            page.problem("error", refused.code, refused.message, refused.span, hint=refused.hint)
        )
        return None
    if isinstance(tree, Branch) and tree.entries:
        return page, tree
    empty = tree is None or (isinstance(tree, Branch)) or plain_data(tree) is None
    message = "the document is empty" if empty else "the document is not a mapping of keys"
    span = None if tree is None or empty else tree.span
    problems.append(page.problem("error", "not-a-mapping", message, span, hint=_STARTS))
    return None


_STARTS = "a document begins with `version: 1`; `lakeload schema` describes the rest"


def kind_of(tree: Branch) -> Kind | None:
    """Tell a document's kind by the keys only one kind has."""
    destination, pipeline = set(Destination.model_fields), set(Pipeline.model_fields)
    given = set(tree.entries)
    only_destination = len(given & (destination - pipeline))
    only_pipeline = len(given & (pipeline - destination))
    if only_destination == only_pipeline:
        return None
    return "destination" if only_destination > only_pipeline else "pipeline"


def wrong_kind(page: Page, tree: Branch, kind: Kind | None, expected: Kind | None) -> Problem:
    """Say that a document is not what is expected here, or neither kind."""
    if kind is None:
        message = "this is neither a destination nor a pipeline"
        hint = "a destination has `bucket` and `region`, a pipeline has `source` and `tables`"
    else:
        message = f"this is a {kind}, and a {expected} is needed here"
        hint = f"`lakeload schema {expected}` describes what is needed"
    span = next(iter(tree.entries.values())).key
    return page.problem("error", "wrong-kind", message, span, hint=hint)
