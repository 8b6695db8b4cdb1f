"""Settings of another product, carried over into a destination and pipelines."""

from __future__ import annotations

import contextlib
import json
import re
from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from lakeload.config.document import (
    Branch,
    DocumentEntry,
    Items,
    Leaf,
    Tree,
    TreeReader,
    plain_data,
    resolved,
)
from lakeload.config.page import Page
from lakeload.config.problems import InvalidDocuments
from lakeload.config.secret_names import SECRET_SETTINGS, has_userinfo, shown
from lakeload.config.yaml_tree import YamlRefused, read_nodes
from lakeload.documents.destination import Destination
from lakeload.documents.durations import is_interval
from lakeload.documents.explain import literals, model_at
from lakeload.documents.iceberg import Catalog
from lakeload.documents.iceberg_rules import CATALOG_SETTINGS
from lakeload.documents.load import kind_of
from lakeload.documents.other_products import (
    Product,
    TheirSetting,
    TheirValue,
    our_value,
    plain,
    products,
)
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.init.declared_types import Dialect, declared_types
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import CatalogType
from lakeload_jobs.contract.traits import CATALOGS, FORMATS


@dataclass(frozen=True)
class Secret:
    """A reference to the variable of the secret setting at `path` of the destination."""

    path: str


Value = str | bool | int | Secret | tuple[str, ...] | Mapping[str, str]


@dataclass(frozen=True)
class Carried:
    """A setting as it is here: `theirs` is where it comes from, blank for a default of theirs."""

    theirs: str
    value: Value
    differs: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A setting that is not carried over, and why."""

    setting: str
    reason: str


@dataclass
class ImportedTable:
    """One table; `incremental` if the other product loads what is new only."""

    theirs: str
    settings: dict[str, Carried] = field(default_factory=dict)
    incremental: bool = False


@dataclass
class Imported:
    """What a configuration becomes. Settings are by their paths in the destination or pipeline."""

    product: Product
    destination: dict[str, Carried] = field(default_factory=dict)
    pipeline: dict[str, Carried] = field(default_factory=dict)
    tables: list[ImportedTable] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secret settings of the destination, by path."""
        return tuple(
            one.value.path for one in self.destination.values() if isinstance(one.value, Secret)
        )


def read_configuration(page: Page) -> Branch:
    """Return the tree of a configuration in YAML or JSON. Raises `InvalidDocuments`.

    References as `${NAME}` stay as they are. No line of the text is shown: which of its values
    are secret is not known before it is read.
    """
    if "\t" in page.text:
        # JSON may be indented with tabs, which YAML does not allow.
        with contextlib.suppress(ValueError, RecursionError):
            page = Page(page.path, json.dumps(json.loads(page.text), ensure_ascii=False, indent=1))
    reader = TreeReader(page, {})
    hint = "paste it as JSON, or as `Label: value` lines with special characters in quotes"
    try:
        node = read_nodes(page.text)
        tree = None if node is None else reader.read(node)
    except YamlRefused as refused:
        problem = page.problem(
            "error", refused.code, "this is neither YAML nor JSON", refused.span, hint=hint
        )
        raise InvalidDocuments((replace(problem, snippets=()),)) from None
    if wrong := [problem for problem in reader.problems if problem.code != "environment"]:
        raise InvalidDocuments([replace(problem, snippets=()) for problem in wrong])
    if not isinstance(tree, Branch) or not tree.entries:
        raise InvalidDocuments((page.problem("error", "not-a-mapping", _NO_KEYS, None, hint=hint),))
    return tree


_NO_KEYS = "this is not a configuration: it has no keys with values"


def carry_over(trees: Sequence[Branch]) -> Imported:
    """Return the configuration that the documents of one product describe.

    Every setting of theirs is carried over or listed in `left_out`. Raises `InvalidInput` for
    documents of no product, of several, or with several destinations.
    """
    found = [_product_of(tree) for tree in trees]
    if len({product.name for product in found}) > 1:
        raise InvalidInput(
            f"the file has configurations of {' and of '.join(p.title for p in found)}",
            hint="import those of one product at a time",
        )
    done = Imported(found[0])
    reader = _Reader(done)
    for tree in trees:
        reader.read(tree)
    reader.name_tables()
    reader.leave_unused_collections()
    _complete(done)
    return done


def _product_of(tree: Branch) -> Product:
    """Return the product that has most of the document's settings."""
    if "version" in tree.entries and (kind := kind_of(tree)):
        raise InvalidInput(
            f"this is a {kind} of lakeload already", hint="check it with `lakeload validate`"
        )
    counts = Counter(
        {
            name: sum(1 for _ in _known_names(tree, product))
            for name, product in products().items()
            if product.title
        }
    )
    [(name, count)] = counts.most_common(1)
    if count:
        return products()[name]
    titles = ", ".join(product.title for product in products().values() if product.title)
    raise InvalidInput(
        "this is not a configuration of a product that lakeload knows",
        hint=f"it reads those of {titles} (docs/migrating.md)",
    )


def _known_names(tree: Tree, product: Product, above: str = "") -> Iterator[str]:
    if isinstance(tree, Items):
        for item in tree.items:
            yield from _known_names(item, product, above)
    if not isinstance(tree, Branch):
        return
    for name, entry in tree.entries.items():
        key = plain(name)
        if key == "materializations" and product.tables_key == "bindings":
            yield key
        if key == product.tables_key:
            yield key
        path = above if key in product.wrappers else f"{above}.{key}".lstrip(".")
        if path in product.settings:
            yield path
        yield from _known_names(entry.value, product, path)


class _Reader:
    """Walks through documents of one product, and places each setting."""

    def __init__(self, done: Imported) -> None:
        self.done = done
        self._product = done.product
        self._used: set[str] = set()
        self._keys: dict[str, Carried] = {}
        self._schemas: dict[str, tuple[str, Any]] = {}
        self._naming: dict[str, tuple[str, str]] = {}

    def read(self, tree: Branch) -> None:
        """Read one document."""
        for name, entry in tree.entries.items():
            if plain(name) == "collections" and isinstance(entry.value, Branch):
                self._collections(name, entry.value)
        for name, entry in tree.entries.items():
            if plain(name) == "materializations" and isinstance(entry.value, Branch):
                self._materialization(name, entry.value)
            elif plain(name) != "collections":
                self._setting(name, plain(name), entry.value)

    def _materialization(self, above: str, tree: Branch) -> None:
        if len(tree.entries) != 1:
            raise InvalidInput(
                f"the file has {len(tree.entries)} materializations",
                hint="import them one at a time, each into a folder of its own",
            )
        [(name, entry)] = tree.entries.items()
        if isinstance(entry.value, Branch):
            self._settings(f"{above}.{name}", "", entry.value)

    def _collections(self, above: str, tree: Branch) -> None:
        """Remember keys and schemas of collections: those of the tables that are made of them."""
        for name, entry in tree.entries.items():
            if not isinstance(entry.value, Branch):
                continue
            given = entry.value.entries
            read = next((key for key in _SCHEMAS if key in given), "")
            for key, value in given.items():
                theirs = f"{above}.{name}.{key}"
                columns = _columns(value.value) if key == "key" else None
                if columns is not None:
                    self._keys[name] = Carried(theirs, columns)
                elif key == read:
                    self._schemas[name] = (theirs, _bundled(given, read))
                elif key == "key":
                    self._leave(theirs, _NESTED)
                else:
                    self._leave(theirs, _OF_COLLECTIONS.get(key, _UNKNOWN))

    def _settings(self, theirs: str, path: str, tree: Branch) -> None:
        for name, entry in tree.entries.items():
            self._setting(f"{theirs}.{name}", f"{path}.{plain(name)}".lstrip("."), entry.value)

    def _setting(self, theirs: str, path: str, tree: Tree) -> None:
        path = path.removesuffix("_sops")
        key = path.rpartition(".")[2]
        if key == self._product.tables_key and isinstance(tree, Items):
            for i, item in enumerate(tree.items):
                self._table(f"{theirs}[{i}]", item)
        elif key in self._product.wrappers and isinstance(tree, Branch):
            self._settings(theirs, path.rpartition(".")[0], tree)
        elif self._product.name == "airbyte" and path in _NAMING and _text(tree):
            self._naming[path] = (theirs, _text(tree))
        else:
            self._place(theirs, path, tree, self._product.settings, None)

    def _table(self, theirs: str, tree: Tree) -> None:
        if not isinstance(tree, Branch):
            self._leave(theirs, _UNKNOWN)
            return
        switches = {
            (key, _text(value)): name.lstrip(".")
            for name, key, value in _flat(tree, self._product, "")
        }
        for switch in (("selected", "false"), ("disable", "true")):
            if switch in switches:
                self._leave(theirs, f"`{switches[switch]}` says that it is not loaded")
                return
        table = ImportedTable(theirs, incremental=self._product.incremental)
        modes: dict[str, tuple[str, str]] = {}
        schema: tuple[str, Any] | None = None
        # What was chosen wins over what the source proposes.
        proposed = ("source_defined_primary_key", "default_cursor_field")
        settings = sorted(_flat(tree, self._product, theirs), key=lambda one: one[1] in proposed)
        for name, key, value in settings:
            if key in ("sync_mode", "destination_sync_mode") and (text := _text(value)):
                modes[key] = (name, text)
            elif key == "json_schema":
                schema = (name, plain_data(value))
            elif key == "selected_fields" and ("field_selection_enabled", "false") in switches:
                self._leave(name, "the selection of fields is off")
            else:
                self._place(name, key, value, self._product.tables, table)
        if modes:
            self._mode(table, modes)
        self._fit_table(table, schema)
        self.done.tables.append(table)

    def _mode(self, table: ImportedTable, modes: Mapping[str, tuple[str, str]]) -> None:
        """Set what two settings of theirs, or one, say together."""
        order = [modes[name] for name in ("sync_mode", "destination_sync_mode") if name in modes]
        theirs = " and ".join(name for name, _ in order)
        both = "_".join(text for _, text in order)
        found = our_value("Table", "mode", both)
        if found is None and both.upper() in literals(Table.model_fields["mode"].annotation):
            found = TheirValue(both.upper())
        if found is None:
            for name, _ in order:
                self._leave(name, "lakeload has no such mode: write `mode`")
            return
        table.incremental = found.incremental
        note = found.note if found.here == "UPSERT" else ""
        table.settings["mode"] = Carried(theirs, found.here, _sentence(note))
        if found.appends_again:
            table.settings["on_append_again"] = Carried("", "ALLOW", _APPENDS_AGAIN)

    def _fit_table(self, table: ImportedTable, schema: tuple[str, Any] | None) -> None:
        """Leave out what has no effect together with the other settings."""
        settings = table.settings
        named = settings.get("table")
        collection = str(named.value) if named else ""
        if named and "/" in collection:
            settings["table"] = replace(named, value=collection.rpartition("/")[2])
        if collection in self._keys and "primary_key" not in settings:
            settings["primary_key"] = self._keys[collection]
            self._used.add(self._keys[collection].theirs)
        schema = schema or self._schemas.get(collection)
        if schema:
            self._types(table, *schema)
            self._used.add(schema[0])
        if not named and "name" in settings:
            settings["table"] = replace(settings["name"], differs="")
        mode = settings.get("mode")
        if "cursor" in settings and (mode is None or mode.value != "UPSERT"):
            cursor = settings.pop("cursor")
            self._leave(cursor.theirs, "`incremental` loads each file once; a cursor is for UPSERT")

    def _types(self, table: ImportedTable, theirs: str, schema: Any) -> None:
        """Set the types of the columns that a schema declares, and list what of it is lost."""
        if not isinstance(schema, Mapping):
            self._leave(theirs, "it is in another file: put the schema itself in its place")
            return
        key = table.settings.get("primary_key")
        columns = key.value if key and isinstance(key.value, tuple) else ()
        declared = declared_types(schema, cast(Dialect, self._product.name), columns)
        include = table.settings.get("columns.include")
        chosen = include.value if include and isinstance(include.value, tuple) else declared.types
        types = {name: kind for name, kind in declared.types.items() if name in chosen}
        if types:
            table.settings["columns.types"] = Carried(theirs, types, _TYPES_NOTE)
        elif not declared.unknown:
            self._leave(theirs, "it declares no columns")
        mode = table.settings.get("mode")
        if _DELETED_AT in types and mode and mode.value == "UPSERT":
            where = Carried(theirs, f"{_DELETED_AT} is not null", _DELETED_NOTE)
            table.settings |= {"deleted_when": where, "deletes": Carried("", "DELETE")}
        for name, reference in declared.unknown:
            setting = f"{theirs}.properties.{name}" if name else theirs
            self._leave(setting, f"a part of it is in another document, `{shown(reference)}`")
        if keywords := sorted(declared.keywords):
            named = ", ".join(f"`{shown(keyword)}`" for keyword in keywords)
            self._leave(theirs, f"lakeload checks types, and not {named}")

    def name_tables(self) -> None:
        """Give streams the target's namespaces and names that their connection says."""
        definition, form, prefix = (self._naming.get(name) for name in _NAMING)
        rule = plain(definition[1]).replace("_", "") if definition else ""
        if definition and rule not in ("source", "destination", "customformat"):
            self._leave(definition[0], "lakeload knows no such definition: write `namespace`")
        elif definition:
            self._namespaces(definition[0], rule, form)
        if form and rule != "customformat":
            self._leave(form[0], "it has no effect without the namespace definition `customformat`")
        if prefix:
            self._prefix(*prefix)

    def _prefix(self, theirs: str, prefix: str) -> None:
        """Set the name of each table."""
        for table in self.done.tables:
            stream = table.settings.get("table", Carried("", ""))
            named = f"{theirs} and {stream.theirs}"
            table.settings["name"] = Carried(named, f"{prefix}{stream.value}")
        if not self.done.tables:
            self._leave(theirs, "no streams are imported: write `name` of each table")

    def _namespaces(self, theirs: str, rule: str, form: tuple[str, str] | None) -> None:
        """Set the namespace of each table; those without have that of the destination."""
        theirs = f"{theirs} and {form[0]}" if form and rule == "customformat" else theirs
        for table in self.done.tables:
            own = table.settings.pop("namespace", None)
            source = str(own.value) if own else ""
            text = source if rule == "source" else ""
            if form and rule == "customformat":
                text = form[1].replace("${SOURCE_NAMESPACE}", source)
            if text:
                named = f"{theirs} and {own.theirs}" if own else theirs
                table.settings["namespace"] = Carried(named, text)
            elif own:
                self._leave(own.theirs, f"`{theirs}`: that of the destination is used")
        default = self.done.pipeline.get("namespace")
        if any("namespace" in table.settings for table in self.done.tables):
            return
        if default:
            named = f"{default.theirs} and {theirs}"
            self.done.pipeline["namespace"] = replace(default, theirs=named)
        else:
            self._leave(theirs, "no destination is imported: write `namespace` of the pipeline")

    def _place(
        self,
        theirs: str,
        path: str,
        tree: Tree,
        known: Mapping[str, TheirSetting],
        table: ImportedTable | None,
    ) -> None:
        """Carry over one setting and those below it, or list it."""
        if _is_empty(tree):
            return
        setting = known.get(path) or next(
            (known[above] for above in _above(path) if above in known and known[above].without),
            None,
        )
        if setting is not None and setting.without:
            self._leave(theirs, setting.without.removesuffix(": remove the line"))
        elif isinstance(tree, Branch) and not (setting and setting.here == "table_properties"):
            for name, entry in tree.entries.items():
                below = f"{path}.{plain(name).removesuffix('_sops')}"
                self._place(f"{theirs}.{name}", below, entry.value, known, table)
        elif setting is None:
            self._leave(theirs, _UNKNOWN)
        else:
            self._carry(theirs, setting, tree, table)

    def _carry(
        self, theirs: str, setting: TheirSetting, tree: Tree, table: ImportedTable | None
    ) -> None:
        here, differs = setting.here, setting.differs
        home, _, path = here.partition(".")
        if table is not None:
            target, path = table.settings, here
        else:
            target = self.done.destination if home == "destination" else self.done.pipeline
        value: Value | None
        if path.rpartition(".")[2] in SECRET_SETTINGS:
            value = Secret(path)
        elif path in ("primary_key", "cursor", "columns.include"):
            columns = _columns(tree)
            if columns is None or (path == "cursor" and len(columns) != 1):
                self._leave(theirs, _NESTED)
                return
            value = columns[0] if path == "cursor" else columns
        elif path == "table_properties":
            value = _properties(tree)
        else:
            model = Destination if home == "destination" else Pipeline
            value = _value(tree, Table if table else model, path)
        if value is None:
            self._leave(theirs, "its value is not one that this setting has here")
        elif isinstance(value, str) and has_userinfo(value):
            self._leave(theirs, "it holds a user name or password: write it without")
        elif path == "destination_prefix" and path in target:
            parts = {plain(target[path].theirs.rpartition(".")[2]): target[path].value}
            parts[plain(theirs.rpartition(".")[2])] = value
            joined = "_".join(str(parts[name]) for name in _SCHEMA_PARTS if name in parts)
            target[path] = Carried(f"{target[path].theirs} and {theirs}", joined, _SCHEMA_NOTE)
        elif path in target:
            self._leave(theirs, f"`{target[path].theirs}` is carried over in its place")
        else:
            target[path] = Carried(theirs, value, differs)

    def leave_unused_collections(self) -> None:
        """List what is said of collections that no table is made of."""
        for theirs in (
            *(key.theirs for key in self._keys.values()),
            *(theirs for theirs, _ in self._schemas.values()),
        ):
            if theirs not in self._used:
                self._leave(theirs, "no table of this configuration is made of the collection")

    def _leave(self, theirs: str, reason: str) -> None:
        self.done.left_out.append(LeftOut(theirs, reason))


_NESTED = "a column inside of another cannot be a key or cursor, or chosen"
_UNKNOWN = "lakeload has no setting for it"
_NAMING = ("namespace_definition", "namespace_format", "prefix")
"""Settings of a connection of Airbyte that name the tables of all of its streams."""
_TYPES_NOTE = (
    "As declared there. Files of CSV, Parquet, ORC and Avro must have each of these columns."
)
_APPENDS_AGAIN = "As there, each sync appends all rows again, on purpose."
_DELETED_AT = "_ab_cdc_deleted_at"
_DELETED_NOTE = "As there, a change that says when a row was deleted removes it."
_SCHEMAS = ("readSchema", "schema", "writeSchema")
"""The first that a collection has is that of its readers."""
_OF_COLLECTIONS = {
    "writeSchema": "it is for what a capture writes: the types are those of the read schema",
    "projections": "`columns.rename` and `columns.exclude` of a table do this",
    "derive": "lakeload loads what it reads: export the rows of the derivation",
}
_SCHEMA_PARTS = ("destination_prefix", "source_schema")
_SCHEMA_NOTE = "Files have no schema of their own, so that of the source is a part of it."


def _bundled(collection: Mapping[str, DocumentEntry], read: str) -> Any:
    """Return the schema that a collection is read with, with the one that it refers to."""
    schema, write = (
        plain_data(collection[name].value) if name in collection else {}
        for name in (read, "writeSchema")
    )
    if read != "readSchema" or not isinstance(schema, Mapping) or not isinstance(write, Mapping):
        return schema
    own = [one["$defs"] for one in (write, schema) if isinstance(one.get("$defs"), Mapping)]
    definitions = dict(ChainMap(*reversed(own), {"flow://write-schema": write}))
    return {**schema, "$defs": definitions}


def _flat(tree: Branch, product: Product, theirs: str) -> Iterator[tuple[str, str, Tree]]:
    """Yield the settings of a table without its wrappers."""
    for name, entry in tree.entries.items():
        if plain(name) in product.wrappers and isinstance(entry.value, Branch):
            yield from _flat(entry.value, product, f"{theirs}.{name}")
        else:
            yield f"{theirs}.{name}", plain(name), entry.value


def _above(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _is_empty(tree: Tree) -> bool:
    """Return whether there is nothing to carry over: no value, or an empty list."""
    if isinstance(tree, Leaf):
        return not tree.text.strip() or (tree.plain and resolved(tree.text) is None)
    return not (tree.items if isinstance(tree, Items) else tree.entries)


def _text(tree: Tree) -> str:
    return tree.text.strip() if isinstance(tree, Leaf) else ""


def _columns(tree: Tree) -> tuple[str, ...] | None:
    """Return names of columns from `id`, `[id]`, `[[id], [line]]`, `[/id]` or `{fieldPath: [id]}`;
    None for others."""
    if isinstance(tree, Leaf):
        name = tree.text.removeprefix("/")
        return None if "/" in name else (name,)
    if isinstance(tree, Branch) and tree.entries.keys() == {"fieldPath"}:
        tree = tree.entries["fieldPath"].value
    if not isinstance(tree, Items):
        return None
    found: list[str] = []
    for item in tree.items:
        part = _columns(item)
        if part is None or len(part) != 1:
            return None
        found += part
    return tuple(found)


def _properties(tree: Tree) -> Mapping[str, str] | None:
    """Return properties as text; None for what has others inside."""
    if not isinstance(tree, Branch):
        return None
    texts = {name: _text(entry.value) for name, entry in tree.entries.items()}
    return texts if all(texts.values()) else None


def _value(
    tree: Tree, model: type[Destination] | type[Pipeline] | type[Table], path: str
) -> Value | None:
    """Return the value of a setting as it is written here, None for one that it cannot have."""
    if not isinstance(tree, Leaf):
        return None
    above, _, name = path.rpartition(".")
    owner = model_at(model, above.split(".") if above else ())
    assert owner is not None, path  # noqa: S101
    annotation = owner.model_fields[name].annotation
    text = tree.text.strip()
    theirs = our_value(owner.__name__, name, text)
    if theirs is not None:
        text = theirs.here
    choices = literals(annotation)
    if choices:
        return text.upper().replace(" ", "_") if theirs is None else text
    if annotation is bool:
        return resolved(text.lower()) if text.lower() in ("true", "false") else None
    if annotation is int:
        return int(text) if text.isascii() and text.isdecimal() else None
    if annotation == timedelta | None:
        return text if is_interval(text) else None
    return text


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _complete(done: Imported) -> None:
    """Add the other product's defaults, and adapt the settings of the catalog."""
    for path, value in done.product.defaults.items() if done.destination else ():
        if path not in done.destination and (path != "glue_database_prefix" or _in_glue(done)):
            note = "Its default there; here it is empty. With it your databases keep their names."
            differs = note if path == "glue_database_prefix" else ""
            done.destination[path] = Carried("", value, differs)
    _catalog(done)
    _role(done)
    done.left_out.append(LeftOut("the source", _SOURCE))


_SOURCE = "lakeload reads files: fill in `source.format` and the `path` of each table"


def _in_glue(done: Imported) -> bool:
    """Return whether tables are registered in AWS Glue."""

    def value(path: str, default: str) -> Any:
        return done.destination[path].value if path in done.destination else default

    traits = FORMATS.get(value("table_format", Destination.model_fields["table_format"].default))
    catalog = CATALOGS.get(value("iceberg.catalog.type", Catalog.model_fields["type"].default))
    if traits is None or not traits.has_catalog:
        return value("parquet.update_glue_catalog", "") is True
    return catalog is not None and catalog.in_glue


def _catalog(done: Imported) -> None:
    """Move settings of the catalog to those that its type has here."""
    settings = done.destination
    given = settings.get("iceberg.catalog.type")
    uri = settings.get("iceberg.catalog.uri")
    host = _host(str(uri.value)) if uri else ""
    client = "iceberg.catalog.client_id" in settings
    if given and client and host.endswith(".snowflakecomputing.com"):
        given = replace(given, value="SNOWFLAKE_OPEN_CATALOG")
        settings["iceberg.catalog.type"] = given
    kind = str(given.value if given else Catalog.model_fields["type"].default)
    if kind not in CATALOG_SETTINGS:
        return
    names = CATALOG_SETTINGS[cast(CatalogType, kind)].names
    _polaris(done, names)
    for path in [path for path in settings if path.startswith("iceberg.catalog.")]:
        name = path.rpartition(".")[2]
        if name != "type" and name not in names:
            one = settings.pop(path)
            done.left_out.append(LeftOut(one.theirs, f"a {kind} catalog has no `{name}` here"))
    located = settings.get("iceberg.warehouse_location")
    if located and not CATALOGS[cast(CatalogType, kind)].located:
        del settings["iceberg.warehouse_location"]
        done.left_out.append(LeftOut(located.theirs, f"a {kind} catalog decides where tables are"))
    elif located and "bucket" in settings and "prefix" not in settings:
        path = str(located.value).removeprefix(f"s3://{settings['bucket'].value}/").strip("/")
        if path and "://" not in path:
            # The policy and the log are then within the folder, not in the whole bucket.
            settings["prefix"] = Carried(located.theirs, path)
    branch = settings.get("iceberg.branch")
    if branch and "ref" in names:
        del settings["iceberg.branch"]
        note = "It names the catalog's branch, not of each table (`iceberg.branch`)."
        settings["iceberg.catalog.ref"] = replace(branch, differs=note)
    if "access_delegation" in names and "credentials.access_key_id" in settings:
        note = "As there, the keys above are used for the files, and not the catalog's credentials."
        settings["iceberg.catalog.access_delegation"] = Carried("", "NONE", note)


def _host(url: str) -> str:
    """Return the host of a URL, blank where there is none or the URL is wrong."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _polaris(done: Imported, names: Iterable[str]) -> None:
    """Fit the settings of Polaris, which is a REST catalog or Snowflake's own here."""
    settings, at = done.destination, "iceberg.catalog."
    if "credential" in names and f"{at}client_id" in settings:
        one, other = settings.pop(f"{at}client_id"), settings.pop(f"{at}client_secret", None)
        theirs = f"{one.theirs} and {other.theirs}" if other else one.theirs
        note = "Both in one: `CLIENT_ID:CLIENT_SECRET`."
        settings[f"{at}credential"] = Carried(theirs, Secret(f"{at}credential"), note)
    if "warehouse" in names and f"{at}catalog_name" in settings:
        settings[f"{at}warehouse"] = settings.pop(f"{at}catalog_name")
    scope = settings.get(f"{at}scope")
    role = re.fullmatch(r"PRINCIPAL_ROLE:(\S+)", str(scope.value)) if scope else None
    if scope and role and "principal_role" in names:
        del settings[f"{at}scope"]
        settings[f"{at}principal_role"] = replace(scope, value=role[1])


def _role(done: Imported) -> None:
    """Ask for an ExternalId where the other product has one that no setting names."""
    settings = done.destination
    role, path = settings.get("credentials.role_arn"), "credentials.external_id"
    if role and path not in settings:
        note = "Choose one, and demand it in the role's trust policy: theirs was the vendor's."
        settings[path] = Carried("", Secret(path), note)
