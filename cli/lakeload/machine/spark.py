"""Selection of Spark: the pyspark package, or SPARK_HOME when its version matches."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.contract.errors import MachineNotReady

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

    Raises `MachineNotReady` when SPARK_HOME is set but is not Spark 4.1, or pyspark is missing.
    """
    configured, pip = environment.get("SPARK_HOME"), pyspark_home()
    home = Path(configured) if configured else pip
    if home is None:
        raise MachineNotReady("pyspark is not installed", hint=INSTALL_HINT)
    hint = INSTALL_HINT
    if configured:
        hint = "unset SPARK_HOME to use the pyspark that was installed with lakeload"
    version = read_version(home)
    if version is None or not (home / "bin" / "spark-submit").is_file():
        missing = f"the pyspark in `{home}` does not contain Spark"
        if configured:
            missing = f"SPARK_HOME is `{home}`, which has no Spark"
        raise MachineNotReady(missing, hint=hint)
    if not version.startswith(f"{SUPPORTED}."):
        found = f"the installed pyspark is {version}"
        if configured:
            found = f"SPARK_HOME is `{home}` with Spark {version}"
        raise MachineNotReady(f"{found}, and lakeload needs {SUPPORTED}.x", hint=hint)
    return SparkInstallation(home, version, ours=home == pip)


def pyspark_home() -> Path | None:
    """Return the folder of the installed pyspark, without importing it; None when there is none."""
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin else None


def read_version(home: Path) -> str | None:
    """Return the Spark version of `home` from the name of its core jar, or None."""
    for jar in sorted(home.glob("jars/spark-core_2.13-*.jar")):
        if match := re.fullmatch(r"spark-core_2\.13-(\d+\.\d+\.\d+.*)\.jar", jar.name):
            return match[1]
    return None
