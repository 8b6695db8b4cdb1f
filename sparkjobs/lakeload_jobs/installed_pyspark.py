"""The choice of pyspark: the installed package, in place of Spark's copy of it in a zip.

spark-submit puts `pyspark.zip` and py4j's first into the path of the driver and of Python workers,
and Python compiles the modules of a zip anew in each process: 0.4 CPU seconds each.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def use_installed_pyspark() -> None:
    """Remove Spark's zips from the path where Spark itself is the installed package `pyspark`.

    Call it before anything of pyspark is imported.
    """
    home = Path(os.environ.get("SPARK_HOME", ""))
    packages = home.parent
    if (
        home.name == "pyspark"
        and str(packages) in sys.path
        and (packages / "py4j" / "__init__.py").is_file()
    ):
        zips = home / "python" / "lib"
        sys.path[:] = [path for path in sys.path if Path(path).parent != zips]
        # Workers have all these read their folders again, in each task.
        for path in [path for path in sys.path_importer_cache if Path(path).parent == zips]:
            del sys.path_importer_cache[path]
