"""The `spark:` block, and which of Spark's properties are lakeload's own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lakeload.config.model import Finding, Model, refusals
from lakeload.config.scalars import DriverMemory, Text, TextValues
from lakeload.config.secret_names import has_userinfo, looks_secret, shown
from lakeload.data import read_toml
from lakeload.runtimes import find_runtime, masters_written, misspelt
from lakeload_jobs.contract.spec import ReaderChoice

OWNED: dict[str, str] = read_toml(__package__, "owned_properties.toml")
"""Properties that documents and flags cannot set, by name or beginning (with a dot), and why."""


def conf_finding(name: str, value: str) -> Finding | None:
    """Say why the property `name` cannot be set to `value`, or return None.

    It serves `spark.conf` and `--conf` alike. Secrets are refused: Spark shows its properties.
    """
    if not name.startswith("spark."):
        return Finding(
            f"`{shown(name)}` is not a property of Spark", "properties begin with `spark.`", (name,)
        )
    for own, why in OWNED.items():
        inside = own if own.endswith(".") else own + "."
        if name == own.rstrip(".") or name.startswith(inside):
            return Finding(f"`{shown(name)}` is lakeload's own", why, (name,), "owned-property")
    if looks_secret(name) or has_userinfo(value):
        return Finding(
            f"`{shown(name)}` looks like a secret, and Spark shows its properties to everyone",
            "give secrets by reference under `credentials`",
            (name,),
            "secret-literal",
        )
    return None


def master_finding(master: str) -> Finding | None:
    """Say why tasks cannot run on `master`, or return None. For `spark.master` and `--master`."""
    if find_runtime(master):
        return None
    hint = f"{masters_written()} are"
    if misspelt(master):
        return Finding(f"`{shown(master)}` is not a master of Spark", hint)
    return Finding(
        f"the master `{shown(master)}` is not supported yet", hint, code="not-supported-yet"
    )


def _master(value: str) -> str:
    if finding := master_finding(value):
        raise refusals([finding])
    return value


ClassData = Literal["AUTO", "MANUAL"]
Conf = Annotated[dict[str, str], TextValues(conf_finding)]
Master = Annotated[Text, AfterValidator(_master)]


class Spark(Model):
    """How Spark runs."""

    master: Master = "local[*]"
    """`local[N]`, `local[*]`, `local-cluster[…]` or `spark://HOST:PORT`."""
    driver_memory: DriverMemory | None = None
    """The driver's heap, such as `4g`. Default: half of this machine's memory, at most 8 GiB."""
    reader: ReaderChoice = "AUTO"
    """`DIRECT` reads Parquet files without Spark's reader, with less CPU, or rejects the table;
    `JVM` always reads through Spark. `AUTO` reads direct where every value is the same."""
    class_data: ClassData = "MANUAL"
    """No effect any more: `lakeload jars fetch` builds the AppCDS archive, with which Spark starts
    faster, and no load does."""
    conf: Conf = Field(default_factory=dict)
    """Further properties of Spark; those that lakeload sets itself are rejected."""
