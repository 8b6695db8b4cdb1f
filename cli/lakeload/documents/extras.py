"""Optional extras of lakeload that settings need."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

from lakeload.documents.pipeline import Pipeline
from lakeload_jobs.contract.errors import MachineNotReady


@dataclass(frozen=True)
class Extra:
    """An extra: the setting that needs it, a module that it installs, and how that is called."""

    name: str
    setting: str
    module: str
    about: str

    @property
    def is_installed(self) -> bool:
        """Whether this Python has it."""
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:
            # A package above it is missing.
            return False

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'lakeload[{self.name}]'"

    def check(self) -> None:
        """Raise `MachineNotReady` where it is not installed."""
        if not self.is_installed:
            raise MachineNotReady(
                f"`{self.setting}`: {self.about} is not installed",
                hint=f"install it with `{self.command}`",
            )


LINEAGE = Extra("lineage", "lineage", "openlineage", "the client of OpenLineage")

OPENTELEMETRY = Extra(
    "otel", "opentelemetry", "opentelemetry.exporter.otlp.proto.http", "OpenTelemetry's exporter"
)


def extras_of(pipeline: Pipeline) -> Iterator[Extra]:
    """Yield the extras that reports of a pipeline's jobs need."""
    if pipeline.lineage is not None:
        yield LINEAGE
    if pipeline.opentelemetry:
        yield OPENTELEMETRY
