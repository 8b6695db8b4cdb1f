"""The process that Spark forks Python workers from: it imports what they need once for all of them,
and they share its memory. Its argument is the module of a worker."""

import gc

# Imports make no garbage.
gc.disable()

from lakeload_jobs.installed_pyspark import use_installed_pyspark

use_installed_pyspark()

# ruff: noqa: E402
from pyspark.daemon import manager

import lakeload_jobs.formats.data_files.parts
import lakeload_jobs.formats.data_files.stage
import lakeload_jobs.sources.files.text.table
import lakeload_jobs.sources.files.typed.rows  # noqa: F401

if __name__ == "__main__":
    # A collection in a worker would write to the pages of every object.
    gc.freeze()
    gc.enable()
    manager()  # type: ignore[no-untyped-call]
