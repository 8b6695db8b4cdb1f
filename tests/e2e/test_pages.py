"""Pages that show a whole load: their files, commands and outputs are those of a real run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.command import lakeload
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "docs/first-load.md").read_text(encoding="utf-8")
"""Has the data files, which the README names too."""


def _plain(text: str, lake: Lake | None = None) -> list[str]:
    """Return output without what differs from run to run: sizes, seconds, dates, the bucket."""
    if lake:
        place = f"{lake.seeded.bucket}/{lake.seeded.prefix}"
        text = text.replace(place, "my-data-lake/data-lake/production")
    text = re.sub(r"[\d.,]+ (?:KiB|B|ms|s)\b", "SIZE", text)
    text = re.sub(r"\d{4}/\d\d/\d\d/\d\d/", "HOUR/", text)
    text = re.sub(r"\b\d+\.\d\b", "SECONDS", text)
    return [" ".join(line.split()) for line in text.strip().splitlines()]


@pytest.mark.parametrize("name", ["docs/first-load.md", "README.md"])
def test_the_page_shows_what_a_load_of_its_files_prints(
    name: str, lake: Lake, tmp_path: Path
) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    for path, text in re.findall(r"`(data/\w+\.csv)`:\n\n```csv\n(.*?)^```$", FILES, re.M | re.S):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    [pipeline] = [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        if "\ntables:" in block
    ]
    (tmp_path / "pipeline.yml").write_text(pipeline, encoding="utf-8")
    lake.write_destination(tmp_path)
    transcript = "".join(re.findall(r"^```\n(\$ lakeload .*?)^```$", page, re.M | re.S))
    shown = re.findall(r"^\$ lakeload (.*)\n((?:[^$\n].*\n|\n)*)", transcript, re.MULTILINE)
    assert [command.split()[0] for command, _ in shown][:1] == ["validate"]
    for command, output in shown:
        ended = lakeload(lake, tmp_path, *shlex.split(command))
        assert ended.code == 0, ended.stderr
        printed = _plain(ended.stderr + ended.stdout, lake)
        # A message is wrapped elsewhere where a name in it is longer.
        text = " ".join(printed)
        missing = [line for line in _plain(output) if line != "…" and line not in text]
        assert missing == [], text
