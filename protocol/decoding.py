"""Writes the decoder of one message in one version: straight-line source without a schema at run time.

Neighbouring fields of fixed size, and the length that follows them, are read by one ``Struct``. No length and no
count is believed before it has been compared with the bytes that are left.
"""

from collections.abc import Callable
from struct import error as struct_error
from struct import unpack_from
from typing import Any, cast

from protocol import wire
from protocol.schema import Field, Schema, message_info, schema_of
from protocol.source import Source, least_size, plain_fields, size_of, tagged_fields

Decoder = Callable[[bytes, int], Any]


def compile_decoder(cls: type, version: int, *, elements_max: int | None = None) -> Decoder:
    """Return the function that reads ``cls`` in ``version`` from a position on; trailing bytes are left alone.

    Args:
        elements_max: how many elements all arrays of a message may have together; None for any number.
    """
    writer = _DecoderWriter(version, flexible=version in message_info(cls).flexible, elements_max=elements_max)
    return cast("Decoder", writer.write(schema_of(cls)).compile("decode", f"{cls.__name__} v{version} decoder"))


class _DecoderWriter:
    def __init__(self, version: int, *, flexible: bool, elements_max: int | None) -> None:
        self._version = version
        self._flexible = flexible
        self._elements_max = elements_max
        self._run: list[tuple[str, str]] = []
        self._source = Source("def decode(b, p):")
        self._source.values |= {
            "IndexError": IndexError,
            "Malformed": wire.Malformed,
            "TooManyElements": wire.TooManyElements,
            "Truncated": wire.Truncated,
            "len": len,
            "new": tuple.__new__,
            "range": range,
            "read_string_length": wire.read_string_length,
            "read_uvarint": wire.read_uvarint,
            "skip_tags": wire.skip_tags,
            "struct_error": struct_error,
            "tuple": tuple,
            "unpack_from": unpack_from,
        }

    def write(self, schema: Schema) -> Source:
        source = self._source
        source.add("end = len(b)")
        if self._elements_max is not None:
            source.add(f"room = {self._elements_max}")
        with source.block("try:"):
            result = self._struct(schema)
            source.add(f"return {result}")
        # Every read behind the end shows as one of these, wherever it happens, so no read needs a check of its own.
        with source.block("except (struct_error, IndexError):"):
            source.add(f"raise Truncated(what={schema.cls.__name__!r}, size_bytes=end) from None")
        return source

    def _struct(self, schema: Schema) -> str:
        """Read a struct, and return the expression that builds it."""
        found = {}
        for name, field in plain_fields(schema, self._version):
            found[name] = self._source.name(name)
            self._field(found[name], field, f"{schema.cls.__name__}.{name}")
        if self._flexible:
            self._tags(schema, found)
        self._flush()
        values = [
            found[name] if name in found else self._source.value("default", field.default)
            for name, field in schema.fields
        ]
        return f"new({self._source.value(schema.cls.__name__, schema.cls)}, ({', '.join(values)},))"

    def _field(self, target: str, field: Field, what: str) -> None:
        match field.kind:
            case "fixed":
                self._run.append((target, field.code))
            case "string" | "bytes":
                self._sized(target, field, what)
            case "array":
                self._array(target, field, what)
            case "struct" if self._version in field.nullable:
                self._run.append(("n", "b"))
                self._flush()
                self._source.add(f"{target} = None")
                with self._source.block("if n >= 0:"):
                    self._nested(target, field)
            case "struct":
                self._nested(target, field)

    def _nested(self, target: str, field: Field) -> None:
        assert field.struct is not None
        result = self._struct(schema_of(field.struct))
        self._source.add(f"{target} = {result}")

    def _flush(self) -> None:
        """Read the fixed fields collected so far at once."""
        if not self._run:
            return
        names = [name for name, _ in self._run]
        codes = "".join(code for _, code in self._run)
        self._run.clear()
        if codes == "B":
            self._source.add(f"{names[0]} = b[p]")
        else:
            self._source.add(f"{', '.join(names)}, = {self._source.unpack(codes)}(b, p)")
        self._source.add(f"p += {size_of(codes)}")

    def _length(self, code: str, reader: str) -> None:
        """Read a length or count into ``n``: the varint's as it stands, null being 0, and others null being -1."""
        self._run.append(("n", "B" if self._flexible else code))
        self._flush()
        if self._flexible:
            with self._source.block("if n > 127:"):
                self._source.add(f"n, p = {reader}(b, p - 1)")

    def _sized(self, target: str, field: Field, what: str) -> None:
        source = self._source
        text = field.kind == "string"
        self._length("h" if text else "i", "read_string_length" if text else "read_uvarint")
        empty = 1 if self._flexible else 0
        with source.block(f"if n > {empty}:"):
            source.add(f"q = p + n - {empty}" if empty else "q = p + n")
            with source.block("if q > end:"):
                source.add(f"raise Truncated(what={what!r}, size_bytes=end)")
            source.add(f"{target} = b[p:q]" + ('.decode("utf-8", "replace")' if text else ""))
            source.add("p = q")
        with source.block(f"elif n == {empty}:"):
            source.add(f"{target} = " + ('""' if text else 'b""'))
        self._null(target, field, what)

    def _null(self, target: str, field: Field, what: str) -> None:
        """Continue an ``if`` over ``n`` with null, where it is allowed, and with what never is."""
        source = self._source
        if self._version in field.nullable:
            with source.block(f"elif n == {0 if self._flexible else -1}:"):
                source.add(f"{target} = None")
        with source.block("else:"):
            length = "n - 1" if self._flexible else "n"
            source.add(f"raise Malformed(what={f'length of {what}'!r}, value={length})")

    def _array(self, target: str, field: Field, what: str) -> None:
        source = self._source
        element = field.element
        assert element is not None
        self._length("i", "read_uvarint")
        least = least_size(element, self._version, flexible=self._flexible)
        # Otherwise a count could ask for any number of elements that take no bytes.
        assert least > 0
        with source.block(f"if n > {0 if self._flexible else -1}:"):
            if self._flexible:
                source.add("n -= 1")
            with source.block(f"if n * {least} > end - p:" if least > 1 else "if n > end - p:"):
                source.add(f"raise Truncated(what={what!r}, size_bytes=end)")
            self._spend()
            if element.kind == "fixed":
                self._fixed_elements(target, element)
            else:
                self._elements(target, element, what)
        self._null(target, field, what)

    def _spend(self) -> None:
        """Take ``n`` elements from what all arrays of the message share."""
        if self._elements_max is not None:
            self._source.add("room -= n")
            with self._source.block("if room < 0:"):
                self._source.add(f"raise TooManyElements(limit={self._elements_max})")

    def _fixed_elements(self, target: str, element: Field) -> None:
        source = self._source
        # Compiling the format costs more than unpacking a few numbers with it.
        prepared = f"prepared_{element.code}"
        if prepared not in source.values:
            source.values[prepared] = wire.prepare_unpack(element.code)
        large = f'unpack_from(f">{{n}}{element.code}", b, p)'
        source.add(f"{target} = {prepared}[n](b, p) if n < {wire.PREPARED_MAX} else {large}")
        source.add(f"p += n * {size_of(element.code)}")

    def _elements(self, target: str, element: Field, what: str) -> None:
        source = self._source
        items, append = source.name("items"), source.name("append")
        source.add(f"{items} = []")
        source.add(f"{append} = {items}.append")
        with source.block("for _ in range(n):"):
            if element.kind == "struct":
                assert element.struct is not None
                source.add(f"{append}({self._struct(schema_of(element.struct))})")
            else:
                item = source.name("item")
                self._field(item, element, what)
                self._flush()
                source.add(f"{append}({item})")
        source.add(f"{target} = tuple({items})")

    def _tags(self, schema: Schema, found: dict[str, str]) -> None:
        source = self._source
        known = tagged_fields(schema, self._version)
        self._run.append(("n", "B"))
        self._flush()
        if not known:
            with source.block("if n:"):
                source.add("p = skip_tags(b, p - 1)")
            return
        for name, field in known:
            found[name] = source.name(name)
            source.add(f"{found[name]} = {source.value('default', field.default)}")
        with source.block("if n:"):
            self._known_tags(schema, known, found)

    def _known_tags(self, schema: Schema, known: list[tuple[str, Field]], found: dict[str, str]) -> None:
        source = self._source
        stop, what = source.name("stop"), f"tagged field of {schema.cls.__name__}"
        with source.block("if n > 127:"):
            source.add("n, p = read_uvarint(b, p - 1)")
        with source.block("if n * 2 > end - p:"):
            source.add(f"raise Truncated(what={what!r}, size_bytes=end)")
        with source.block("for _ in range(n):"):
            source.add("t, p = read_uvarint(b, p)")
            source.add("n, p = read_uvarint(b, p)")
            source.add(f"{stop} = p + n")
            with source.block(f"if {stop} > end:"):
                source.add(f"raise Truncated(what={what!r}, size_bytes=end)")
            for place, (name, field) in enumerate(known):
                with source.block(f"{'elif' if place else 'if'} t == {field.tag}:"):
                    self._field(found[name], field, f"{schema.cls.__name__}.{name}")
                    self._flush()
                    with source.block(f"if p > {stop}:"):
                        source.add(f"raise Malformed(what={f'size of {name}'!r}, value=p)")
            source.add(f"p = {stop}")
