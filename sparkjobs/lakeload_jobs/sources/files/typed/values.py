"""Values as Arrow has them of a file, made those of a column's kind, exactly or not at all."""

from __future__ import annotations

import struct
from array import array
from binascii import hexlify
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Column, Kind, pc, with_child
from lakeload_jobs.sources.files.typed.variant import variant_texts
from lakeload_jobs.sources.paths.source_bytes import is_utf8

_DAY = 86_400_000_000
_TOO_FINE = "it has digits below a microsecond"
BAD_SHOWN = 10
"""So many bad values are named."""
_UUID_HEX = 32
_UUID_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))

Translate = Callable[[int], int | None]
"""Returns the place in a parent of a place in its child; None for what no parent refers to."""


@dataclass(frozen=True)
class BadValues:
    """Values of one column of a batch that have no place in its kind. `rows` are their places in
    the batch, one for each value; `texts` are those of the first few, `reason` is what is wrong."""

    column: str
    rows: tuple[int, ...]
    texts: tuple[str, ...]
    reason: str
    is_loss: bool
    """Whether `on_loss: TRUNCATE` would load it."""
    is_key: bool
    """Whether it is the key of a map, which cannot be null."""


def with_all_digits(micros: Column, nanos: Column) -> Column:
    """Return microseconds as text, with the digits that the same values in nanoseconds have
    (`Conversion.without_lost_digits`)."""
    return Conversion(truncates=False)._exact(micros, nanos, _all_digits)


def _all_digits(micros: Column, nanos: Column) -> Column:
    if pt.is_string(nanos.type):
        return nanos
    more = pc.utf8_lpad(_digits(micros, nanos).cast(pa.string()), 3, "0")
    shown = micros.view(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(shown, more, "Z" if micros.type.tz else "", "")


def _digits(micros: Column, nanos: Column) -> Column:
    """Return the digits below a microsecond, as a number."""
    return pc.subtract(nanos.view(pa.int64()), pc.multiply(micros.view(pa.int64()), 1000))


class Conversion:
    """Converts the columns of one batch, and collects what is bad in `bad`; it becomes null.

    `truncates`: digits that have no place are cut off, as `on_loss: TRUNCATE` says.
    """

    def __init__(self, *, truncates: bool) -> None:
        self.bad: list[BadValues] = []
        self._truncates = truncates
        self._path: list[str] = []
        self._parents: list[Translate] = []
        self._in_key = False

    def column(self, name: str, column: Column, kind: Kind) -> Column:
        """Return a column as `kind`, as which `columns.unite` has it."""
        with self._below(name):
            return self._as_kind(column, kind)

    def without_lost_digits(self, name: str, micros: Column, nanos: Column) -> Column:
        """Return microseconds with null where the same values in nanoseconds, which wrap around
        outside of 1677 to 2262, or as text, have other digits. They may be at any depth."""
        with self._below(name):
            return self._exact(micros, nanos, self._without_lost)

    def _exact(self, micros: Column, nanos: Column, leaf: Callable[..., Column]) -> Column:
        """Return what `leaf` makes of values that have other types in `nanos`, in nested values as
        well: Arrow would cut the digits that `micros` lacks off without a word."""
        own = micros.type
        if own == nanos.type:
            return micros
        if pt.is_struct(own):
            fields = []
            for place, child in enumerate(own):
                with self._below(child.name):
                    fields.append(self._exact(micros.field(place), nanos.field(place), leaf))
            names = [child.name for child in own]
            return pa.StructArray.from_arrays(fields, names=names, mask=micros.is_null())
        if pt.is_map(own):
            with self._below("key", _parents(micros)):
                keys = self._exact(micros.keys, nanos.keys, leaf)
            with self._below("value", _parents(micros)):
                items = self._exact(micros.items, nanos.items, leaf)
            kind = pa.map_(keys.type, items.type)
            entries = pa.StructArray.from_arrays(
                [keys, items], fields=[kind.key_field, kind.item_field]
            )
            return with_child(micros, kind, entries)
        if pt.is_list(own):
            with self._below("element", _parents(micros)):
                values = self._exact(micros.values, nanos.values, leaf)
            return with_child(micros, pa.list_(values.type), values)
        return leaf(micros, nanos)

    def _without_lost(self, micros: Column, nanos: Column) -> Column:
        if pt.is_string(nanos.type):
            return self._as_text(micros, nanos)
        lost = pc.not_equal(_digits(micros, nanos), 0)
        if self._truncates or not pc.any(lost).as_py():
            return micros
        return self._without(micros, lost, _all_digits(micros, nanos), _TOO_FINE, loss=True)

    def _as_text(self, values: Column, texts: Column) -> Column:
        """Return dates or microseconds with null where their text has other digits, as rejected
        records of earlier versions have it. Where there is a text alone, the value has no place in
        the type."""
        strange = pc.and_(values.is_null(), texts.is_valid())
        values = self._without(values, strange, texts, "it is not a valid date or time")
        if self._truncates or pt.is_date(values.type):
            return values
        lost = pc.and_(values.is_valid(), pc.invert(pc.match_substring_regex(texts, r"000Z?$")))
        return self._without(values, lost, texts, _TOO_FINE, loss=True)

    def _as_kind(self, column: Column, kind: Kind) -> Column:
        own = column.type
        if own == kind and not pt.is_nested(kind):
            return self._valid_text(column) if pt.is_string(kind) else column
        if isinstance(column, pa.ExtensionArray):
            return self._as_kind(column.storage, kind)
        if pt.is_null(own):
            return pa.nulls(len(column), kind)
        if pt.is_dictionary(own):
            return self._as_kind(column.dictionary_decode(), kind)
        if pt.is_struct(kind):
            return self._struct(column, kind)
        if pt.is_map(kind):
            return self._map(column, kind)
        if pt.is_list(kind):
            return self._list(column, kind)
        if pt.is_struct(own):
            return self._variant(column)
        return self._value(column, kind)

    def _variant(self, column: Column) -> Column:
        texts, bad = variant_texts(column)
        values = pa.array(texts, pa.string())
        hexes = [_hex(column, row) if row in bad else None for row in range(len(texts))]
        shown = pa.array(hexes, pa.string())
        for reason in dict.fromkeys(bad.values()):
            mask = pa.array([bad.get(row) == reason for row in range(len(texts))])
            values = self._without(values, mask, shown, f"as a VARIANT {reason}")
        return values

    def _value(self, column: Column, kind: Kind) -> Column:
        own = column.type
        if pt.is_timestamp(own):
            return self._timestamp(column, kind)
        if pt.is_time(own):
            if pt.is_integer(kind):
                return column.view(pa.int32() if own.bit_width == 32 else pa.int64()).cast(kind)
            return self._time(column)
        if pt.is_integer(own) and pt.is_floating(kind):
            return self._double(column, kind)
        if pt.is_decimal256(own) and pt.is_decimal128(kind):
            return self._decimal(column, kind)
        if pt.is_duration(own):
            return column.view(pa.int64()).cast(kind)
        if pt.is_string(kind):
            if pt.is_fixed_size_binary(own):
                return _uuids(column) if own.byte_width == 16 else _intervals(column)
            if pt.is_binary(own):
                return self._valid_text(column.view(kind))
            # A cast would fail at the first text that is not UTF-8.
            binary = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
            if own in binary:
                return self._valid_text(column.view(binary[own]).cast(pa.binary()).view(kind))
        return column.cast(kind)

    def _valid_text(self, column: Column) -> Column:
        """Return a text column with null for what is not UTF-8: Arrow reads text unchecked."""
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            values = column.view(pa.binary()).to_pylist()
            bad = pa.array([raw is not None and not is_utf8(raw) for raw in values])
            shown = [
                None if raw is None else raw.decode(errors="backslashreplace") for raw in values
            ]
            return self._without(column, bad, pa.array(shown, pa.string()), "it is not UTF-8")
        return column

    def _struct(self, column: Column, kind: Kind) -> Column:
        fields = []
        for child in kind:
            place = column.type.get_field_index(child.name)
            if place < 0:
                fields.append(pa.nulls(len(column), child.type))
            else:
                with self._below(child.name):
                    fields.append(self._as_kind(column.field(place), child.type))
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())

    def _map(self, column: Column, kind: Kind) -> Column:
        before, self._in_key = self._in_key, True
        with self._below("key", _parents(column)):
            keys = self._as_kind(column.keys, kind.key_type)
        self._in_key = before
        with self._below("value", _parents(column)):
            items = self._as_kind(column.items, kind.item_type)
        fields = [kind.key_field, kind.item_field]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return self._without_twins(with_child(column, kind, entries))

    def _without_twins(self, maps: Column) -> Column:
        """Return maps with null for those that have a key twice."""
        lists = pa.ListArray.from_arrays(maps.offsets, maps.keys, mask=maps.is_null())
        places, keys = pc.list_parent_indices(lists), lists.flatten()
        if pt.is_nested(keys.type):
            keys = pa.array([repr(key) for key in keys.to_pylist()], pa.string())
        found = pa.table({"place": places, "key": keys}).group_by(["place", "key"])
        twins = found.aggregate([([], "count_all")])
        twins = twins.filter(pc.greater(twins["count_all"], 1)).sort_by("place")
        if not twins.num_rows:
            return maps
        bad = pc.is_in(pa.array(range(len(maps)), pa.int64()), twins["place"].cast(pa.int64()))
        texts: list[str | None] = [None] * len(maps)
        for place, key in zip(twins["place"].to_numpy(), twins["key"].to_pylist(), strict=True):
            texts[place] = str(key)
        shown = pa.array(texts, pa.string())
        return self._without(maps, bad, shown, "the map has this key twice")

    def _list(self, column: Column, kind: Kind) -> Column:
        if not pt.is_list(column.type):
            column = _plain_list(column)
        with self._below("element", _parents(column)):
            return with_child(column, kind, self._as_kind(column.values, kind.value_type))

    def _timestamp(self, column: Column, kind: Kind) -> Column:
        """Microseconds since 1970, in whatever zone they are shown."""
        if pt.is_integer(kind):
            return column.view(kind)
        local = column.view(pa.timestamp(column.type.unit))
        try:
            return local.cast(pa.timestamp("us")).view(kind)
        except pa.ArrowInvalid:
            pass
        if column.type.unit == "ns":
            whole = pc.floor_temporal(local, unit="microsecond")
            if not self._truncates:
                whole = self._without(
                    whole,
                    pc.not_equal(whole, local),
                    local,
                    _TOO_FINE,
                    loss=True,
                )
            return whole.cast(pa.timestamp("us")).view(kind)
        ticks = local.view(pa.int64())
        most = (2**63 - 1) // (10**6 // {"s": 1, "ms": 10**3}[column.type.unit])
        far = pc.or_(pc.greater(ticks, most), pc.less(ticks, -most))
        kept = self._without(ticks, far, ticks, "it is beyond what microseconds can count")
        return kept.view(local.type).cast(pa.timestamp("us")).view(kind)

    def _double(self, column: Column, kind: Kind) -> Column:
        """Whole numbers as doubles, as far as each is one."""
        values = column.cast(kind, safe=False)
        # What is no longer within 64 bits has no whole number to compare with.
        far = pc.greater_equal(values, 2.0**63)
        whole = pc.if_else(far, 0, values).cast(column.type, safe=False)
        lost = pc.or_(far, pc.not_equal(whole, column))
        return self._without(values, lost, column, "the nearest double is another number")

    def _decimal(self, column: Column, kind: Kind) -> Column:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            pass
        most = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), column.type)
        far = pc.greater_equal(pc.abs(column), most)
        too_long = f"it has more digits than decimal({kind.precision},{kind.scale})"
        kept = self._without(column, far, column, too_long)
        return kept.cast(kind)

    def _time(self, column: Column) -> Column:
        """`HH:mm:ss.SSSSSS`, as far as `24:00:00`, which some writers have."""
        unit = column.type.unit
        ticks = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        ticks = ticks.cast(pa.int64())
        if unit == "ns":
            micros = pc.divide(ticks, 1000)
            if not self._truncates:
                lost = pc.not_equal(pc.multiply(micros, 1000), ticks)
                micros = self._without(micros, lost, column, _TOO_FINE, loss=True)
        else:
            micros = pc.multiply(ticks, {"s": 10**6, "ms": 1000, "us": 1}[unit])
        strange = pc.or_(pc.less(micros, 0), pc.greater(micros, _DAY))
        micros = self._without(
            micros, strange, ticks, f"as a number of {unit} it is not a time of day"
        )
        is_end = pc.equal(micros, _DAY)
        within = pc.if_else(is_end, 0, micros)
        text = within.view(pa.time64("us")).cast(pa.string())
        return pc.if_else(is_end, "24:00:00.000000", text)

    def _without(
        self, values: Column, bad: Column, shown: Column, reason: str, *, loss: bool = False
    ) -> Column:
        """Return `values` with null for those that are `bad`, which are noted as `shown`."""
        if not pc.any(bad).as_py():
            return values
        places = pc.indices_nonzero(bad).to_pylist()
        rows = {place: self._row(place) for place in places}
        known = [place for place in places if rows[place] is not None]
        if known:
            some = shown.take(pa.array(known[:BAD_SHOWN]))
            texts = tuple(pc.cast(some, pa.string()).to_pylist())
            found = tuple(row for place in known if (row := rows[place]) is not None)
            name = ".".join(self._path)
            is_key = self._in_key
            self.bad.append(BadValues(name, found, texts, reason, loss, is_key))
        # A null among keys, which Arrow does not survive, would be read by nobody: the load fails.
        if self._in_key:
            return pc.if_else(bad, pa.scalar(0, pa.int64()).cast(values.type), values)
        return pc.if_else(bad, pa.nulls(len(values), values.type), values)

    def _row(self, place: int) -> int | None:
        row: int | None = place
        for translate in reversed(self._parents):
            if row is None:
                return None
            row = translate(row)
        return row

    @contextmanager
    def _below(self, name: str, translate: Translate | None = None) -> Iterator[None]:
        self._path.append(name)
        if translate is not None:
            self._parents.append(translate)
        try:
            yield
        finally:
            self._path.pop()
            if translate is not None:
                self._parents.pop()


def _plain_list(column: Column) -> Column:
    """Return lists of another layout as `list`: Arrow's cast of list views is wrong about nulls."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.ListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())


def _hex(column: Column, row: int) -> str:
    """Return the bytes of a VARIANT as messages show them."""
    place = column.type.get_field_index("value")
    value = None if place < 0 else column.field(place)[row].as_py()
    return "" if value is None else f"0x{value.hex()}"


def _parents(column: Column) -> Translate:
    """Return what finds the list, or map, that an element is in."""
    offsets: list[int] = []

    def translate(place: int) -> int | None:
        if not offsets:
            offsets.extend(column.offsets.to_pylist())
        row = bisect_right(offsets, place) - 1
        return row if 0 <= row < len(column) else None

    return translate


def _uuids(column: Column) -> Column:
    """Text as `f81d4fae-7dec-11d0-a765-00a0c91e6bf6`."""
    count = len(column)
    raw = b"".join(column.fill_null(bytes(16)).to_pylist())
    offsets = pa.py_buffer(array("i", range(0, (count + 1) * _UUID_HEX, _UUID_HEX)))
    text = pa.StringArray.from_buffers(count, offsets, pa.py_buffer(hexlify(raw)))
    groups = [pc.utf8_slice_codeunits(text, first, end) for first, end in _UUID_GROUPS]
    joined = pc.binary_join_element_wise(*groups, "-")
    return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))


def _intervals(column: Column) -> Column:
    """Text as ISO 8601 has it: `P1M2DT3.004S`."""
    values = column.to_pylist()
    return pa.array([None if raw is None else _interval(raw) for raw in values], pa.string())


def _interval(raw: bytes) -> str:
    months, days, millis = struct.unpack("<III", raw)
    seconds = f"{millis // 1000}.{millis % 1000:03d}".rstrip("0").rstrip(".")
    date = "".join(f"{n}{unit}" for n, unit in ((months, "M"), (days, "D")) if n)
    time = f"T{seconds}S" if millis or not date else ""
    return f"P{date}{time}"
