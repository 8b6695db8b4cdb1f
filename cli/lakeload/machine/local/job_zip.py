"""The zip of `lakeload_jobs` that travels with `--py-files`."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import platformdirs

import lakeload_jobs
from lakeload.machine.cache import mark_used, remove_unused
from lakeload_jobs.contract.errors import MachineLacks

_EPOCH = (1980, 1, 1, 0, 0, 0)
_DIGITS = 16


def jobs_directory() -> Path:
    """Return the folder of the installed `lakeload_jobs` package."""
    return Path(lakeload_jobs.__path__[0])


def entry_script() -> Path:
    """Return the script given to spark-submit."""
    return jobs_directory() / "entry" / "run_job.py"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return LAKELOAD_CACHE_DIR, else the platform's cache directory."""
    if configured := environment.get("LAKELOAD_CACHE_DIR"):
        return Path(configured).absolute()
    return platformdirs.user_cache_path("lakeload", appauthor=False)


def jobs_package(cache: Path, source: Path | None = None) -> Path:
    """Return the zip of the package, made once per content.

    Equal content gives equal bytes. Whoever makes one removes those that were not used for long:
    each version of lakeload has its own. Raises `MachineLacks` when the cache cannot be written, or
    Spark could not take the zip from there.
    """
    if "," in str(cache):
        raise MachineLacks(
            f"Spark cannot take files from `{cache}`: it parts their names at commas",
            hint="set LAKELOAD_CACHE_DIR to a folder without one",
        )
    root = source or jobs_directory()
    files = {
        f"{root.name}/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    target = cache / f"{root.name}-{digest.hexdigest()[:_DIGITS]}.zip"
    mark_used(target)
    if target.is_file():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=cache, prefix=f".{root.name}-", suffix=".part", delete=False
        ) as part:
            _write(files, Path(part.name))
        # Another sync may be doing the same: both write the same bytes, and one name remains.
        os.replace(part.name, target)  # noqa: PTH105 (a name, not a path, is at hand)
    except OSError as error:
        raise MachineLacks(
            f"writing `{target}` failed: {error.strerror}",
            hint="set LAKELOAD_CACHE_DIR to a folder that can be written to",
        ) from error
    remove_unused(cache, f"{root.name}-{'[0-9a-f]' * _DIGITS}.zip", f".{root.name}-*.part")
    return target


def _write(files: Mapping[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
