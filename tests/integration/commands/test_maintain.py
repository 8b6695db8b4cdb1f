"""`lakeload maintain` of tables of Parquet files: uploads of abandoned attempts."""

from __future__ import annotations

from collections.abc import Callable

from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import Command
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.ministack import Lake


def test_maintain_aborts_stale_uploads_older_than_the_limit(
    command: Command, load: Callable[..., Writer], admin_objects: Objects, lake: Lake
) -> None:
    load("monday")
    Writer(admin_objects, "dead").stage()
    now = ("maintain", "pipeline.yml", "--abort-older-than", "0")

    young = command("maintain", "pipeline.yml", "--apply")
    said = command(*now)
    before = len(lake.uploads())
    done = command(*now, "--apply", "--output", "json")

    assert young.code == said.code == done.code == done.document["exit_code"] == 0
    assert young.lines()[1:] == [
        "shop.orders          NOTHING_TO_DO  nothing to do",
        "shop.visits          NOTHING_TO_DO  nothing to do",
        "shop.payments        NOTHING_TO_DO  nothing to do",
    ]
    assert (
        said.lines()[1] == "shop.orders    uploads  WOULD_DO       2 uploads of abandoned attempts"
    )
    assert "nothing was written; the same command with `--apply` does it" in said.err
    assert (before, lake.uploads()) == (2, [])
    (step,) = done.document["tables"][0]["steps"]
    assert (step["status"], step["files"], len(step["items"])) == ("DONE", 2, 2)
    assert done.document["applied"]
