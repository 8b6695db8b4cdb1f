"""Numbers that say how the product is built: `python -m tests.structure [FOLDER]` prints them.

FOLDER is another checkout, to compare with. Comparisons of a table format, a type of catalog, a
type of source or a master belong to the contract and the registries: each one elsewhere is a place
that a further format, catalog, source or runtime has to open. The same holds for engines of
databases and formats of files, which are also decided by the keys of dictionaries.
"""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from lakeload_jobs.contract import spec

ROOT = Path(__file__).parents[1]
PRODUCT = ("cli/lakeload", "sparkjobs/lakeload_jobs")
ALLOWED = (
    "sparkjobs/lakeload_jobs/contract/",
    "sparkjobs/lakeload_jobs/aws/glue_calls.py",
    "cli/lakeload/runtimes.py",
    "*/registry.py",
)
"""Where such comparisons belong."""

ROOMS = ("/sources/databases/engines/", "/sources/files/formats/")
"""Packages of one engine or one format of files each, and what they share."""

FORMATS = frozenset(get_args(spec.TableFormat))
CATALOGS = frozenset(get_args(spec.CatalogType))
SOURCES = frozenset({"FILES", "SPARK", "JDBC"})
_NAMES = {"table format": FORMATS, "catalog type": CATALOGS, "source type": SOURCES}
_ENUMS = {"Interface": "catalog type", "TableFormat": "table format"}
ENGINES = frozenset(get_args(spec.DatabaseType)) - {"OTHER"}
FILE_FORMATS = frozenset(get_args(spec.FileFormatName))
_NOT_OF_FILES = frozenset({"table_format", "nested", "written", "logical"})
"""What else is PARQUET or JSON: tables, nested values, logical types."""
_INPUTS = frozenset(name for name in vars(spec) if name.endswith("Input"))
_SECOND_CURRENCY = re.compile(
    r"why_jvm|why_spark|why_no_splits|OnlySpark|NotDirect|NotInArrow|[Dd]eferred_?[Ff]rame"
    r"|(tracking|TRACKING)_(sql|SQL)"
)
"""Words of modules that explain why Spark reads or writes rows, or do with frames what others do
with batches."""
_TEMPLATE = re.compile(r"[=!]=|\bin\b")
_LIST = re.compile(r"^\d+\. `([\w./]+\.py)`")


@dataclass(frozen=True)
class Comparison:
    """One place that decides by a name. `kind` is what is compared."""

    path: str
    line: int
    kind: str
    text: str


def comparisons(root: Path = ROOT) -> list[Comparison]:
    """Return every comparison outside of the places that are meant for them."""
    found: list[Comparison] = []
    for path in _files(root, "*.py"):
        text = (root / path).read_text(encoding="utf-8")
        if not any(_allowed(path, place) for place in ALLOWED):
            found += _of_module(path, text)
            if not any(room in path for room in ROOMS):
                found += _of_rooms(path, text)
    for path in _files(root, "*.jinja"):
        found += _of_template(path, (root / path).read_text(encoding="utf-8"))
    return sorted(found, key=lambda item: (item.path, item.line))


def second_currency(root: Path = ROOT) -> dict[str, int]:
    """Return how many lines of each module have a word of rows as frames beside rows as parts."""
    lines = {
        path: sum(
            1
            for line in (root / path).read_text(encoding="utf-8").splitlines()
            if _SECOND_CURRENCY.search(line)
        )
        for path in _files(root, "*.py")
    }
    return {path: number for path, number in lines.items() if number}


def code(root: Path = ROOT) -> tuple[int, int, int]:
    """Return modules, statement lines and lines of formatted code, without comments and docstrings.

    Every module is written anew from its syntax tree, so that layout makes no difference.
    """
    modules = _files(root, "*.py")
    statements = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, path in enumerate(modules):
            bare = _without_docstrings((root / path).read_text(encoding="utf-8"))
            statements += _lines(bare)
            (Path(folder) / f"m{i}.py").write_text(bare, encoding="utf-8")
        ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
        command = [ruff, "format", "--isolated", "--line-length", "100", "--quiet", folder]
        subprocess.run(command, check=True)
        formatted = sum(_lines(made.read_text("utf-8")) for made in Path(folder).glob("*.py"))
    return len(modules), statements, formatted


def reading_lists(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the numbered lists of modules in docs/layout.md, by the heading above them."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (root / "docs/layout.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif match := _LIST.match(line):
            found.setdefault(heading, []).append(match[1])
    return found


def imports(path: Path, root: Path = ROOT, trees: Sequence[str] = PRODUCT) -> set[str]:
    """Return the modules below `trees` that a module imports, through packages that re-export."""
    found: set[str] = set()
    for name, attribute in _imported(nodes(path.read_text(encoding="utf-8"))):
        submodule = module_file(f"{name}.{attribute}", root, trees) if attribute else None
        module = submodule or module_file(name, root, trees)
        if module is not None:
            found.add(module.relative_to(root).as_posix())
        if module is not None and module.name == "__init__.py" and module != path:
            found |= imports(module, root, trees)
    return found


def circles(root: Path = ROOT, trees: Sequence[str] = PRODUCT) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others. Imports in
    functions count; those for type checkers alone do not."""
    graph: dict[str, set[str]] = {}
    for path in (file for top in trees for file in sorted((root / top).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = (
            (attribute and module_file(f"{name}.{attribute}", root, trees))
            or module_file(name, root, trees)
            for name, attribute in _imported(list(_when_run(tree)))
        )
        modules = {file.relative_to(root).as_posix() for file in found if file}
        own = path.relative_to(root).as_posix()
        graph[own] = modules - {own}
    return sorted(sorted(group) for group in _strong_components(graph) if len(group) > 1)


def _when_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below a node, without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _last_name(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from (other, *_when_run(other))
            continue
        yield child
        yield from _when_run(child)


def _strong_components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the groups of nodes of which each leads to each other one (Kosaraju)."""
    order: dict[str, None] = {}
    for start in graph:
        order |= dict.fromkeys(_leaving_order(start, graph, {*order}))
    backward: dict[str, set[str]] = {node: set() for node in graph}
    for node, others in graph.items():
        for other in others:
            backward[other].add(node)
    groups: list[set[str]] = []
    seen: set[str] = set()
    for start in reversed(order):
        if start not in seen:
            groups.append(set(_leaving_order(start, backward, seen)))
            seen |= groups[-1]
    return groups


def _leaving_order(start: str, graph: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """Return the nodes that a walk from `start` reaches, each behind those that it leads to."""
    if start in seen:
        return []
    left, reached, stack = [], {start}, [(start, iter(sorted(graph[start])))]
    while stack:
        node, others = stack[-1]
        following = next((one for one in others if one not in seen | reached), None)
        if following is None:
            left.append(node)
            stack.pop()
        else:
            reached.add(following)
            stack.append((following, iter(sorted(graph[following]))))
    return left


@functools.lru_cache(maxsize=1)
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Return the nodes of a module; several questions about one in succession parse it once."""
    return tuple(ast.walk(ast.parse(text)))


def module_file(module: str, root: Path = ROOT, trees: Sequence[str] = PRODUCT) -> Path | None:
    """Return the file of a module by its dotted name; None if it is not below `trees`."""
    for tree in trees:
        folder = root / tree
        if module.split(".")[0] != folder.name:
            continue
        package = folder.parent / module.replace(".", "/")
        for file in (package.with_suffix(".py"), package / "__init__.py"):
            if file.is_file():
                return file
    return None


def _imported(module: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what a module imports: module and name, or module alone."""
    for node in module:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _files(root: Path, pattern: str) -> list[str]:
    paths = (path for top in PRODUCT for path in (root / top).rglob(pattern))
    return sorted(path.relative_to(root).as_posix() for path in paths)


def _allowed(path: str, place: str) -> bool:
    return Path(path).match(place) if "*" in place else path.startswith(place)


def _of_module(path: str, text: str) -> Iterator[Comparison]:
    for node in ast.walk(ast.parse(text)):
        if kind := _kind(node):
            shown = ast.unparse(node.pattern if isinstance(node, ast.match_case) else node)
            line = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno  # type: ignore[attr-defined]
            yield Comparison(path, line, kind, shown)


def _of_rooms(path: str, text: str) -> Iterator[Comparison]:
    """Yield the lines that decide by the name of an engine or of a format of files."""
    lines: dict[tuple[int, str], str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            names = [part for operand in operands for part in _parts(operand)]
        elif isinstance(node, ast.Match):
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            values = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
            names = [node.subject, *values]
        elif isinstance(node, ast.Dict):
            names = [key for key in node.keys if key is not None]
        else:
            continue
        for name in names:
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                continue
            if name.value in ENGINES or name.value.upper() in ENGINES:
                lines.setdefault((name.lineno, "engine"), ast.unparse(node))
            elif name.value in FILE_FORMATS and not _of_else(names):
                lines.setdefault((name.lineno, "file format"), ast.unparse(node))
    for (line, kind), shown in lines.items():
        yield Comparison(path, line, kind, shown if len(shown) < 100 else f"{shown[:99]}…")


def _of_else(names: Sequence[ast.expr]) -> bool:
    """Return whether the names are of table formats, or of how values are written."""
    texts = {part.value for part in names if isinstance(part, ast.Constant)}
    return "ICEBERG" in texts or any(_last_name(part) in _NOT_OF_FILES for part in names)


def _kind(node: ast.AST) -> str | None:
    """Return what a node compares; None for a node that decides nothing by such a name."""
    if isinstance(node, ast.Compare):
        return _compared([node.left, *node.comparators])
    if isinstance(node, ast.match_case):
        values = [part.value for part in ast.walk(node.pattern) if isinstance(part, ast.MatchValue)]
        return _compared(values)
    if isinstance(node, ast.Call):
        return _asked(node)
    return None


def _compared(operands: Sequence[ast.expr]) -> str | None:
    parts = [part for operand in operands for part in _parts(operand)]
    if any(_last_name(part) == "format" for part in parts):
        return None  # of a file
    for part in parts:
        if isinstance(part, ast.Attribute) and (kind := _ENUMS.get(_last_name(part.value) or "")):
            return kind
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            for kind, names in _NAMES.items():
                if part.value in names:
                    return kind
            if part.value.startswith(("local", "spark://")) and _of_master(operands):
                return "master"
    return "table format" if any(_last_name(part) == "table_format" for part in parts) else None


def _asked(node: ast.Call) -> str | None:
    """Return "master" or "source type" for a call that tells one from another."""
    name = _last_name(node.func)
    if name == "isinstance" and len(node.args) == 2:
        kinds = {_last_name(part) for part in _parts(node.args[1])}
        return "source type" if kinds & _INPUTS else None
    if name == "is_local":
        return "master"
    matching = name in ("startswith", "fullmatch", "match") and isinstance(node.func, ast.Attribute)
    asked = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else []
    return "master" if matching and _of_master(asked) else None


def _of_master(operands: Sequence[ast.expr]) -> bool:
    return any(_last_name(part) == "master" for operand in operands for part in ast.walk(operand))


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _of_template(path: str, text: str) -> Iterator[Comparison]:
    named = re.compile(rf"[\"']({'|'.join(sorted(FORMATS | CATALOGS | SOURCES))})[\"']")
    for number, line in enumerate(text.splitlines(), 1):
        if (match := named.search(line)) and _TEMPLATE.search(line):
            kind = next(kind for kind, names in _NAMES.items() if match[1] in names)
            yield Comparison(path, number, kind, line.strip())


def _without_docstrings(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [part for part in body if not _is_text(part)]
            node.body = kept or ([ast.Pass()] if body else [])  # type: ignore[attr-defined]
    return ast.unparse(tree) + "\n"


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def print_circles(root: Path) -> None:
    """Print the modules that import each other."""
    found = circles(root)
    for group in found:
        print(f"circle: {', '.join(group)}")  # noqa: T201
    print(f"circles: {len(found)}")  # noqa: T201


def main(arguments: Sequence[str]) -> None:
    """Print everything."""
    root = Path(arguments[0]) if arguments else ROOT
    found = comparisons(root)
    for item in found:
        print(f"{item.path}:{item.line}: {item.kind}: {item.text}")  # noqa: T201
    modules, statements, formatted = code(root)
    print(f"comparisons: {len(found)} in {len({item.path for item in found})} modules")  # noqa: T201
    for kind, number in Counter(item.kind for item in found).most_common():
        print(f"  by {kind}: {number}")  # noqa: T201
    words = second_currency(root)
    print(f"words of rows as frames: {sum(words.values())} lines in {len(words)} modules")  # noqa: T201
    print_circles(root)
    print(f"modules: {modules}")  # noqa: T201
    print(f"code lines: {formatted} formatted, {statements} statement lines")  # noqa: T201
    for heading, listed in reading_lists(root).items():
        print(f"{heading}: {len(listed)} modules")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
