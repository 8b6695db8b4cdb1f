"""Which files of a folder are a table's input, by Spark's own rules. Pure: names in, names out.

Local folders and S3 prefixes are listed by different means and chosen from by these rules, so a
path means the same in both places and before Spark starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.files.listing_options import ListingFilter

S3_SCHEME = "s3://"


class NoFiles(LoadFailed):
    """The place is there, or is a bucket, and holds no file that a path names."""


@dataclass(frozen=True)
class FileState:
    """What identifies the content of an input file when it was listed.

    `path` is an absolute path of this machine or `s3://bucket/key`; `size` in bytes, -1 for a file
    that is gone; `modified` in ns since 1970; `etag` as S3 names it, None for local files. `root`
    is the folder a path of the table names, '' for a file that was named itself.
    """

    path: str
    size: int
    modified: int
    etag: str | None = None
    root: str = field(default="", compare=False)

    @property
    def partitioned(self) -> bool:
        """Whether a folder between `root` and the file is named `column=value`."""
        below = self.path[len(self.root) :] if self.root else ""
        return any("=" in name for name in below.split("/")[:-1])


def is_s3(path: str) -> bool:
    """Whether a path or glob of a table names objects in S3."""
    return path.startswith(S3_SCHEME)


def hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name (HadoopFSUtils), except that
    summary files of Parquet, which hold no rows, are always passed over."""
    underscore = name.startswith("_") and "=" not in name
    return underscore or name.startswith(".") or name.endswith("._COPYING_")


def hidden_below(relative: str) -> bool:
    """Whether a file is hidden, or lies in a folder that is."""
    return any(hidden(name) for name in relative.split("/"))


def choose(found: Iterable[FileState], options: Mapping[str, str]) -> tuple[FileState, ...]:
    """Return the files Spark would read, each once, sorted by path.

    Of a folder: the files directly in it, or all below when it has `column=value` folders or with
    `recursiveFileLookup`. Raises `LoadFailed` for files that Spark would drop without a word, and
    `InvalidInput` for listing options that cannot be understood.
    """
    lower = {name.lower(): value for name, value in options.items()}
    recursive = lower.get("recursivefilelookup", "false").lower() == "true"
    wanted = ListingFilter.from_options(lower)
    chosen: dict[str, FileState] = {}
    for root, files in _by_root(found).items():
        kept = [file for file in files if wanted.accepts(_name(file.path), file.modified)]
        if root and not recursive:
            kept = _of_folder(root, kept)
        for file in kept:
            chosen.setdefault(file.path, file)
    return tuple(chosen[path] for path in sorted(chosen))


def partition_base(files: Sequence[FileState], options: Mapping[str, str]) -> str | None:
    """Return the folder below which `column=value` folders are columns, None without such folders.

    Raises `LoadFailed` where several folders have them: Spark takes columns from one alone.
    """
    lower = {name.lower(): value.lower() for name, value in options.items()}
    if "basepath" in lower or lower.get("recursivefilelookup") == "true":
        return None
    bases = sorted({file.root for file in files if file.partitioned})
    if not bases:
        return None
    others = [file.path for file in files if not file.partitioned or file.root != bases[0]]
    if others:
        raise LoadFailed(
            f"`{bases[0]}` has folders named `column=value`, and `{others[0]}` lies outside them",
            hint="load it as a table of its own, or set the reader option `basePath` or "
            "`recursiveFileLookup: true`",
        )
    return bases[0]


def _by_root(found: Iterable[FileState]) -> dict[str, list[FileState]]:
    files: dict[str, list[FileState]] = {}
    for file in found:
        files.setdefault(file.root, []).append(file)
    return files


def _of_folder(root: str, files: list[FileState]) -> list[FileState]:
    if any(file.partitioned for file in files):
        return files
    return [file for file in files if "/" not in file.path[len(root) :].strip("/")]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
