"""Which Spark runs the job: pip's pyspark, or the one SPARK_HOME points at when it matches."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.contract.errors import MachineLacks

SUPPORTED = "4.1"
"""The only line with the Iceberg runtime lakeload needs."""

INSTALL_HINT = "pip install 'pyspark>=4.1,<4.2' into the environment that runs lakeload"


@dataclass(frozen=True)
class SparkInstallation:
    """A Spark installation. `ours` is False for one that the user named in SPARK_HOME."""

    home: Path
    version: str
    ours: bool

    @property
    def submit(self) -> Path:
        """The spark-submit script."""
        return self.home / "bin" / "spark-submit"


def find_spark(environment: Mapping[str, str]) -> SparkInstallation:
    """Return the Spark to submit to, without importing pyspark.

    Raises `MachineLacks` when SPARK_HOME is set but is not Spark 4.1, or when pyspark is missing.
    """
    if configured := environment.get("SPARK_HOME"):
        return _configured(Path(configured))
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise MachineLacks("pyspark is not installed", hint=INSTALL_HINT)
    home = Path(found.origin).parent
    version = read_version(home)
    if version is None or not (home / "bin" / "spark-submit").is_file():
        raise MachineLacks(f"the pyspark in `{home}` has no Spark in it", hint=INSTALL_HINT)
    if not _supported(version):
        raise MachineLacks(
            f"the installed pyspark is {version}, and lakeload needs {SUPPORTED}.x",
            hint=INSTALL_HINT,
        )
    return SparkInstallation(home, version, ours=True)


def read_version(home: Path) -> str | None:
    """Return the Spark version of `home` from the name of its core jar, or None."""
    for jar in sorted(home.glob("jars/spark-core_2.13-*.jar")):
        if match := re.fullmatch(r"spark-core_2\.13-(\d+\.\d+\.\d+.*)\.jar", jar.name):
            return match[1]
    return None


def _configured(home: Path) -> SparkInstallation:
    version = read_version(home)
    hint = "unset SPARK_HOME to use the pyspark that was installed with lakeload"
    if version is None or not (home / "bin" / "spark-submit").is_file():
        raise MachineLacks(f"SPARK_HOME is `{home}`, and no Spark is there", hint=hint)
    if not _supported(version):
        raise MachineLacks(
            f"SPARK_HOME is `{home}` with Spark {version}, and lakeload needs {SUPPORTED}.x",
            hint=hint,
        )
    pip = importlib.util.find_spec("pyspark")
    ours = pip is not None and pip.origin is not None and Path(pip.origin).parent == home
    return SparkInstallation(home, version, ours=ours)


def _supported(version: str) -> bool:
    return version.startswith(f"{SUPPORTED}.")
