"""Hooks of the documentation site: pages from outside docs/, and links that lead out of it."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "bench/results/2026-11-22-iceberg.md",
    "configs/README.md",
    *(f"configs/{path.name}" for path in sorted((ROOT / "configs").glob("*.yaml"))),
)
"""Files of the repository that are part of the site, with their path from its top."""

FOR_CONTRIBUTORS = (
    "decisions/",
    "design-notes",
    "layout",
    "style",
    "CHANGELOG",
    "CONTRIBUTING",
    "RELEASING",
    "bench/",
)
"""Pages that the search finds after those for users. Guides come before references: who asks in
words of a task wants the steps."""

NOTHING_FOUND = (
    "No page has these words. Try other or fewer words, or the words of an error message without "
    "its values. The page Troubleshooting begins with symptoms, and Home lists all pages."
)

QUESTIONS, SEARCH = ROOT / "docs/questions.txt", ROOT / "docs/search.js"

_FENCED = re.compile(r"^( *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the files that are kept outside docs/."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Point links at the site's own pages. Of links to code the text remains."""
    of_site = page.file.src_uri
    if of_site.startswith(FOR_CONTRIBUTORS):
        page.meta["search"] = {"boost": 0.2}
    elif page.parent is not None and page.parent.title == "Guides":
        page.meta["search"] = {"boost": 1.2}
    in_repository = of_site if of_site in OUTSIDE else f"docs/{of_site}"

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        named = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), path))
        # The README is the site's home page, a folder its index.
        uri = "index.md" if named == "README.md" else named.removeprefix("docs/")
        uri = uri if files.get_file_from_path(uri) else f"{uri}/README.md"
        if not files.get_file_from_path(uri):
            # A page that is missing stays a link, so that a strict build fails.
            return match[0] if named.startswith("docs/") else text
        relative = posixpath.relpath(uri, posixpath.dirname(of_site) or ".")
        return f"[{text}]({relative}{'#' if anchor else ''}{anchor})"

    parts = _FENCED.split(markdown)
    return "".join(part if i % 2 else _LINK.sub(link, part) for i, part in enumerate(parts))


def on_post_page(output: str, **_: Any) -> str:
    """Say what to try when the search finds nothing."""
    return output.replace('"No matching documents"', json.dumps(NOTHING_FOUND))


def on_post_build(config: Any, **_: Any) -> None:
    """Put the search of docs/search.js in the place of the theme's, which compares beginnings of
    words only."""
    [worker] = Path(config.site_dir, "assets/javascripts/workers").glob("search.*.min.js")
    questions = json.dumps(QUESTIONS.read_text(encoding="utf-8"))
    search = SEARCH.read_text(encoding="utf-8")
    worker.write_text(f'"use strict";\nconst QUESTIONS = {questions};\n{search}', encoding="utf-8")
    worker.with_name(f"{worker.name}.map").unlink()
