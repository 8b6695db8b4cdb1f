"""Conditions in Spark's SQL that Arrow evaluates to the same values.

Spark parses the condition, resolves its columns and decides on types and casts. What it has made of
it is translated where Arrow's functions have the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.types as pt
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from lakeload_jobs.rows.arrow import Column, Kind, pc

Java = Any
"""An object of the JVM."""


@dataclass(frozen=True)
class Condition:
    """A condition on the columns of a row. `expression` is a `pyarrow.compute.Expression` that is
    true, false or null. It can be pickled. `columns` are the names of the columns in it."""

    expression: Any
    columns: tuple[str, ...]


_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date", "boolean")
"""Spark's names of types whose values compare alike in Arrow, but for decimals. A string with a
collation has another name."""

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EqualTo": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "LessThanOrEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanOrEqual": lambda a, b: a >= b,
    "EqualNullSafe": lambda a, b: pc.coalesce(a == b, a.is_null() & b.is_null()),
}

_LOGIC: Mapping[str, Callable[..., Any]] = {
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Not": lambda a: ~a,
}


class _OnlyInSql(Exception):
    """Only Spark evaluates this."""


def arrow_condition(frame: DataFrame, sql: str) -> Condition | None:
    """Return the condition as an expression over batches with the columns of `frame`; None where
    only Spark evaluates it."""
    columns = frame._jdf.queryExecution().analyzed().output()
    names = {columns.apply(n).exprId().id(): name for n, name in enumerate(frame.columns)}
    plan = frame.where(F.expr(sql))._jdf.queryExecution().analyzed()
    if _class_name(plan) != "Filter":
        return None
    translator = _Translator(names)
    try:
        expression = translator.expression(plan.condition())
    except _OnlyInSql:
        return None
    return Condition(expression, tuple(translator.columns))


def evaluated(condition: Condition, rows: pa.RecordBatch) -> Column:
    """Return the value of a condition for each row: true, false or null."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.table(rows)))
    project = acero.Declaration(
        "project", acero.ProjectNodeOptions([condition.expression], ["value"])
    )
    found = acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
    return found.column(0).combine_chunks()


class _Translator:
    """Translates Catalyst's expressions. `names` are the columns by the ids of their attributes;
    `columns` are those that expressions have, in order, each once."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._common: dict[str, Any] = {}
        self.columns: dict[str, None] = {}

    def expression(self, node: Java) -> Any:
        """Return the translation. Raises `_OnlyInSql`."""
        name = _class_name(node)
        if name == "Between":
            return self.expression(node.children().apply(0))
        if name == "With":
            return self._with(node)
        if name in ("IsNull", "IsNotNull"):
            value = self._any_type(node.children().apply(0))
            return value.is_null() if name == "IsNull" else value.is_valid()
        kind = _arrow_type(node.dataType())
        if node.foldable():
            return pc.scalar(_constant(node, kind))
        if name == "CommonExpressionRef":
            return self._common[node.id().toString()]
        if name == "AttributeReference":
            return self._column(node)
        children = _children(node)
        if name == "Cast":
            return self._cast(children[0], kind)
        if name in _LOGIC:
            return _LOGIC[name](*map(self.expression, children))
        if name in _COMPARISONS:
            _check_same_type(children)
            return _COMPARISONS[name](*map(self.expression, children))
        if name == "In":
            return self._in(children)
        raise _OnlyInSql

    def _any_type(self, node: Java) -> Any:
        """Translate what is only asked whether it is null."""
        is_column = _class_name(node) == "AttributeReference"
        return self._column(node) if is_column else self.expression(node)

    def _column(self, node: Java) -> Any:
        name = self._names[node.exprId().id()]
        self.columns[name] = None
        return pc.field(name)

    def _with(self, node: Java) -> Any:
        """Translate `BETWEEN`, whose value is compared twice."""
        body, *given = _children(node)
        for one in given:
            self._common[one.id().toString()] = self.expression(one.children().apply(0))
        return self.expression(body)

    def _cast(self, child: Java, kind: Kind) -> Any:
        own = _arrow_type(child.dataType())
        if own != kind and not _holds_all(kind, own):
            raise _OnlyInSql
        return self.expression(child).cast(kind)

    def _in(self, children: list[Java]) -> Any:
        _check_same_type(children)
        first, *listed = children
        if not all(one.foldable() for one in listed):
            raise _OnlyInSql
        kind = _arrow_type(first.dataType())
        values = [_constant(one, kind) for one in listed]
        value = self.expression(first)
        known = [one for one in values if one.is_valid]
        # Of a null it is not known whether it is in the list, and Arrow says it is not.
        found = value.isin(pa.array([one.as_py() for one in known], kind)) | (value != value)
        return (
            found if len(known) == len(values) else found | pc.scalar(pa.scalar(None, pa.bool_()))
        )


def _children(node: Java) -> list[Java]:
    children = node.children()
    return [children.apply(n) for n in range(children.size())]


def _class_name(node: Java) -> str:
    return str(node.getClass().getSimpleName())


def _arrow_type(kind: Java) -> Kind:
    """Return the Arrow type of one of Spark's. Raises `_OnlyInSql`."""
    name = str(kind.simpleString())
    if name not in _TYPES and not name.startswith("decimal("):
        raise _OnlyInSql
    return to_arrow_type(DataType.fromDDL(name))


def _check_same_type(nodes: list[Java]) -> None:
    kinds = {str(node.dataType().simpleString()) for node in nodes}
    if len(kinds) > 1:
        raise _OnlyInSql


def _constant(node: Java, kind: Kind) -> Any:
    """Return the value of an expression without columns. Raises `_OnlyInSql`."""
    try:
        value = node.eval(None)
    except (PySparkException, Py4JError) as error:
        raise _OnlyInSql from error
    if value is None:
        return pa.scalar(None, kind)
    if pt.is_date(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if pt.is_decimal(kind):
        return pa.scalar(Decimal(str(value.toString())), kind)
    return pa.scalar(str(value.toString()) if pt.is_string(kind) else value, kind)


def _holds_all(kind: Kind, own: Kind) -> bool:
    """Whether the type has every value of the type `own`, which is another one."""
    if pt.is_integer(kind) and pt.is_integer(own):
        return bool(kind.bit_width > own.bit_width)
    if not pt.is_decimal(kind):
        return False
    whole = kind.precision - kind.scale
    if pt.is_decimal(own):
        return bool(whole >= own.precision - own.scale and kind.scale >= own.scale)
    return pt.is_integer(own) and bool(whole >= _DIGITS[own.bit_width])


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many digits integers of so many bits have at most."""
