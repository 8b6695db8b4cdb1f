"""Which modules a test file runs: what it imports, starts, reads and gets from fixtures.

Edges come from the text of the modules alone. Beside imports (tests/structure.py) they are:

- names of modules in strings: registries by name, plugins, programs after `-m` or `-c`, patches;
- names of files in strings: scripts that are started, tables and templates that are read;
- fixtures by the names of arguments, and the conftest.py of each folder above a test;
- "sparkjobs" or a path of the product in a string: what reads the sources as text, the farthest.
"""

from __future__ import annotations

import ast
import fnmatch
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.structure import PRODUCT, ROOT, imports, module_file, nodes

TREES = (*PRODUCT, "tests", "bench")
ROOT_CONFTEST = "tests/conftest.py"
FAR = 9
"""Steps to what a change can break only in general."""
_NAME = re.compile(r"\b(?:lakeload|lakeload_jobs|tests|bench)(?:\.\w+)+\.?")
_SOURCES = frozenset({"sparkjobs", *PRODUCT})
_WITHOUT_A_NAME = frozenset({"__init__.py", "__main__.py", "conftest.py"})


@dataclass(frozen=True)
class Module:
    """What the text of a module says about others. `fixtures` are those that it defines,
    `arguments` those that it may ask for."""

    path: str
    imports: frozenset[str]
    strings: frozenset[str]
    arguments: frozenset[str]
    fixtures: frozenset[str]
    autouse: bool

    @property
    def words(self) -> frozenset[str]:
        """The strings of the module, and the parts of those that are paths."""
        return self.strings.union(*(text.split("/") for text in self.strings if "/" in text))


@dataclass(frozen=True)
class Graph:
    """The modules below a folder. `users` are the modules that lead to one, in one step."""

    modules: dict[str, Module]
    users: dict[str, frozenset[str]]
    of_all_tests: frozenset[str]

    @property
    def tests(self) -> list[str]:
        """The files with tests."""
        return sorted(path for path in self.modules if is_test(path))

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """Return every module that leads to a changed one, and the steps between them."""
        steps = dict.fromkeys(changed, 0)
        texts = any(path.startswith(PRODUCT) for path in steps)
        if self.of_all_tests & steps.keys():
            steps |= {test: FAR for test in self.tests if test not in steps}
        self._extend(steps)
        if texts:
            readers = (m.path for m in self.modules.values() if m.strings & _SOURCES)
            steps |= {path: FAR for path in readers if path not in steps}
            self._extend(steps)
        return steps

    def _extend(self, steps: dict[str, int]) -> None:
        todo = list(steps)
        for path in todo:
            for user in self.users.get(path, frozenset()) - steps.keys():
                steps[user] = steps[path] + 1
                todo.append(user)

    def readers(self, file: str) -> set[str]:
        """Return the modules that read a file that is no module, as far as their strings say.

        Where those of a folder of the product or the tests lead to no test: the modules beside it.
        """
        path = PurePosixPath(file)
        modules = self.modules.values()
        named = {m.path for m in modules if path.name in m.words}
        if file.startswith("tests/cases/"):
            folder = {"cases", path.parts[2]}
            return named | {m.path for m in modules if folder <= m.words}
        if file.startswith(tuple(f"{tree}/" for tree in TREES)):
            tested = any(map(is_test, self.distances(named)))
            return named if tested else named | self.beside(file)
        # The product reads nothing outside of its folders.
        folders = path.parts[:-1][:1]
        words = set(folders) if folders else {f"*{path.suffix}"} if path.suffix else set()
        named |= {m.path for m in modules if words & m.words}
        return {name for name in named if not name.startswith(PRODUCT)}

    def beside(self, file: str) -> set[str]:
        """Return the modules of a file's folder, or of the next folder above that has any."""
        for folder in PurePosixPath(file).parents:
            if beside := {m for m in self.modules if PurePosixPath(m).parent == folder}:
                return beside
        return set()


def is_test(path: str) -> bool:
    """Return whether pytest collects a file."""
    return fnmatch.fnmatch(path, "tests/*test_*.py") and "/test_" in path


def read_graph(root: Path = ROOT) -> Graph:
    """Read all modules below `root`."""
    paths = (path for tree in TREES for path in sorted((root / tree).rglob("*.py")))
    modules = {module.path: module for module in (read_module(path, root) for path in paths)}
    edges = _Edges(modules, root)
    users = defaultdict(set)
    for module in modules.values():
        for path in edges.of(module):
            users[path].add(module.path)
    frozen = {path: frozenset(known) for path, known in users.items()}
    return Graph(modules, frozen, edges.of_all_tests())


def read_module(path: Path, root: Path = ROOT) -> Module:
    """Read one module."""
    module = nodes(path.read_text(encoding="utf-8"))
    arguments, fixtures, autouse, strings = set(), set(), False, frozenset(_strings(module))
    for node in module:
        if isinstance(node, ast.FunctionDef):
            marks = [mark for mark in map(ast.unparse, node.decorator_list) if "fixture" in mark]
            fixtures |= {node.name} if marks else set()
            autouse |= any("autouse=True" in mark for mark in marks)
            if marks or node.name.startswith("test_"):
                arguments |= {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.Attribute) and node.attr in ("usefixtures", "getfixturevalue"):
            arguments |= strings
    return Module(
        path.relative_to(root).as_posix(),
        frozenset(imports(path, root, TREES)),
        strings,
        frozenset(arguments),
        frozenset(fixtures),
        autouse,
    )


def _strings(module: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the string constants that are no docstrings, and the programs after `-m`."""
    docstrings = set()
    for node in module:
        if isinstance(node, ast.Expr):
            docstrings.add(id(node.value))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in docstrings:
                yield node.value
        elif isinstance(node, ast.List | ast.Tuple):
            values = [getattr(item, "value", None) for item in node.elts]
            for option, program in itertools.pairwise(values):
                if option == "-m" and isinstance(program, str):
                    yield f"{program}.__main__"


class _Edges:
    """Where a module leads to, in one step."""

    def __init__(self, modules: dict[str, Module], root: Path) -> None:
        self._modules = modules
        self._root = root
        self._by_file = defaultdict(set)
        for path in modules:
            self._by_file[path.rpartition("/")[2]].add(path)
        conftest = modules.get(ROOT_CONFTEST)
        names = conftest.strings if conftest else ()
        plugins = {path for name in names if _NAME.fullmatch(name) for path in self._module(name)}
        self._plugins = [modules[path] for path in sorted(plugins | {ROOT_CONFTEST} & {*modules})]

    def of_all_tests(self) -> frozenset[str]:
        """Return what every test gets: the root's conftest.py and the tools that it imports, and
        plugins with fixtures of that kind; not what those import of the product."""
        if ROOT_CONFTEST not in self._modules:
            return frozenset()
        tools = {path for path in self._modules[ROOT_CONFTEST].imports if path.startswith("tests/")}
        return frozenset({ROOT_CONFTEST, *tools, *(p.path for p in self._plugins if p.autouse)})

    def of(self, module: Module) -> set[str]:
        """Return the modules that a module leads to."""
        if module.path == ROOT_CONFTEST:
            return set()  # its plugins count where a fixture of theirs is used
        folders = PurePosixPath(module.path).parents
        above = {f"{folder}/__init__.py" for folder in folders}
        if is_test(module.path):
            above |= {f"{folder}/conftest.py" for folder in folders} - {ROOT_CONFTEST}
        edges = {*module.imports, *(above & self._modules.keys()), *self._named(module)}
        if module.path.startswith("tests/"):
            # Tables of such names are in modules without tests.
            asked = module.arguments if is_test(module.path) else module.arguments | module.strings
            edges |= {plugin.path for plugin in self._plugins if plugin.fixtures & asked}
        return edges - {module.path}

    def _named(self, module: Module) -> Iterator[str]:
        """Yield the modules that are named in the strings of a module."""
        for text in module.strings:
            for name in _NAME.findall(text):
                yield from self._module(name)
            file = text.rpartition("/")[2]
            if file.endswith(".py") and file not in _WITHOUT_A_NAME:
                named = self._by_file.get(file, set())
                beside = f"{module.path.rpartition('/')[0]}/{file}"
                yield from {beside} if beside in named else named if len(named) == 1 else ()

    def _module(self, name: str) -> Iterator[str]:
        """Yield a module by the beginning of a dotted name; all of a package where it ends with a
        dot, as in f"lakeload.ui.{name}"."""
        parts = name.rstrip(".").split(".")
        for end in range(len(parts), 1, -1):
            if file := module_file(".".join(parts[:end]), self._root, TREES):
                path = file.relative_to(self._root).as_posix()
                yield path
                if name.endswith(".") and end == len(parts) and file.name == "__init__.py":
                    folder = path.rpartition("/")[0]
                    yield from (m for m in self._modules if m.rpartition("/")[0] == folder)
                return
