"""The mutations that were last seen to fail with the code as it is: proven.json.

A mutation's fingerprint is a hash of what its verdict depends on first of all: the mutation, each
function that it changes, and the module of the test that watches. When one of them is touched, the
mutation runs with `make test` again, until `python -m tests.faults.mutations` records it anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.faults.mutations.mutate import MisplacedMutation, functions, read_mutation, read_sources

ROOT = Path(__file__).parents[3]
FILE = Path(__file__).with_name("proven.json")
MUTATIONS = sorted(Path(__file__).parent.glob("*.patch"))


def fingerprints(files: Iterable[Path] = MUTATIONS, root: Path = ROOT) -> dict[str, str]:
    """Return the fingerprint of each mutation by its name; blank for one that fits nowhere."""
    sources = read_sources(root / "sparkjobs")
    return {file.stem: _fingerprint(file, sources, root) for file in files}


def _fingerprint(file: Path, sources: Mapping[Path, str], root: Path) -> str:
    mutation = read_mutation(file)
    test = root / mutation.test.partition("::")[0]
    try:
        touched = functions(mutation, sources)
    except MisplacedMutation:
        return ""
    texts = [file.read_text(encoding="utf-8"), *touched, test.read_text(encoding="utf-8")]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def read_proven(file: Path = FILE) -> dict[str, str]:
    """Return the recorded fingerprints, by the name of the mutation."""
    proven: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return proven


def to_prove(files: Iterable[Path] = MUTATIONS, root: Path = ROOT, proven: Path = FILE) -> set[str]:
    """Return the names of the mutations that were not recorded with the code as it is."""
    known = read_proven(proven)
    return {
        name
        for name, fingerprint in fingerprints(files, root).items()
        if not fingerprint or known.get(name) != fingerprint
    }


def record(proven: Mapping[str, str], file: Path = FILE) -> None:
    """Write fingerprints: a line for each mutation, so that two changes rarely conflict."""
    text = json.dumps(dict(sorted(proven.items())), indent=0)
    file.write_text(text + "\n", encoding="utf-8")
