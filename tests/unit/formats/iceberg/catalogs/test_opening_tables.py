"""What is imported to open the tables of a catalog."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["lakeload_jobs.jobs.load", "lakeload.formats.iceberg.commands"])
def test_loads_that_have_no_rest_catalog_import_no_http_client(module: str) -> None:
    program = f"import sys, {module}; print('requests' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
