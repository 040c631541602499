"""Writes the encoder of one message in one version: straight-line source without a schema at run time.

A field that the version lacks is left out. A value that does not fit its field is a fault of ours, except for a
string, which may have grown since a peer sent it.
"""

from collections.abc import Callable
from struct import pack
from typing import Any, cast

from protocol import wire
from protocol.schema import Field, Schema, message_info, schema_of
from protocol.source import Source, plain_fields, tagged_fields

Encoder = Callable[[Any], bytes]


def compile_encoder(cls: type, version: int) -> Encoder:
    """Return the function that writes the body of ``cls`` in ``version``."""
    return compile_struct_encoder(cls, version, flexible=version in message_info(cls).flexible)


def compile_struct_encoder(cls: type, version: int, *, flexible: bool) -> Encoder:
    """Return the function that writes ``cls`` as it stands inside the messages of ``version``."""
    writer = _EncoderWriter(version, flexible=flexible)
    return cast("Encoder", writer.write(schema_of(cls)).compile("encode", f"{cls.__name__} v{version} encoder"))


class _EncoderWriter:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []
        self._parts = "parts"
        self._source = Source("def encode(message):")
        self._source.values |= {
            "STRING_BYTES_MAX": wire.STRING_BYTES_MAX,
            "StringTooLong": wire.StringTooLong,
            "checked_uuid": wire.checked_uuid,
            "join": b"".join,
            "len": len,
            "pack": pack,
            "write_string_length": wire.write_string_length,
            "write_tags": wire.write_tags,
            "write_uvarint": wire.write_uvarint,
        }

    def write(self, schema: Schema) -> Source:
        source = self._source
        source.add("parts = []")
        self._struct("message", schema)
        source.add("return join(parts)")
        return source

    def _append(self, expression: str) -> None:
        self._source.add(f"{self._parts}.append({expression})")

    def _names(self, schema: Schema) -> dict[str, str]:
        return {name: self._source.name(name) for name, _ in schema.fields}

    def _struct(self, value: str, schema: Schema) -> None:
        names = self._names(schema)
        self._source.add(f"{', '.join(names.values())}, = {value}")
        self._fields(names, schema)

    def _fields(self, names: dict[str, str], schema: Schema) -> None:
        for name, field in plain_fields(schema, self._version):
            self._field(names[name], field)
        if self._flexible:
            self._tags(names, schema)
        self._flush()

    def _field(self, value: str, field: Field) -> None:
        match field.kind:
            case "fixed":
                self._run.append((self._fixed(value, field), field.code))
            case "string" | "bytes":
                self._sized(value, field)
            case "array":
                self._array(value, field)
            case "struct":
                assert field.struct is not None
                if self._version in field.nullable:
                    self._nullable_struct(value, schema_of(field.struct))
                else:
                    self._struct(value, schema_of(field.struct))

    def _nullable_struct(self, value: str, schema: Schema) -> None:
        self._flush()
        with self._source.block(f"if {value} is None:"):
            self._append(r'b"\xff"')
        with self._source.block("else:"):
            self._append(r'b"\x01"')
            self._struct(value, schema)

    def _fixed(self, value: str, field: Field) -> str:
        return f"checked_uuid({value})" if field.code == "16s" else value

    def _packed(self, run: list[tuple[str, str]]) -> str:
        # A pad byte is written as zero and takes no argument.
        arguments = ", ".join(value for value, code in run if code != "x")
        return f"{self._source.pack(''.join(code for _, code in run))}({arguments})"

    def _flush(self) -> None:
        """Write the fixed fields collected so far at once."""
        if self._run:
            self._append(self._packed(self._run))
            self._run.clear()

    def _length(self, code: str, writer: str) -> None:
        """Write the length or count ``n``, null being -1, together with the fixed fields before it."""
        if not self._flexible:
            self._run.append(("n", code))
            self._flush()
            return
        with self._source.block("if n < 127:"):
            self._append(self._packed([*self._run, ("n + 1", "B")]))
        with self._source.block("else:"):
            self._flush()
            self._append(writer)
        self._run.clear()

    def _sized(self, value: str, field: Field) -> None:
        source = self._source
        text = field.kind == "string"
        data = source.name("data")
        if self._version in field.nullable:
            with source.block(f"if {value} is None:"):
                source.add(f'{data} = b""')
                source.add("n = -1")
            with source.block("else:"):
                self._measure(data, value, text=text)
        else:
            self._measure(data, value, text=text)
        self._length("h" if text else "i", "write_string_length(n)" if text else "write_uvarint(n + 1)")
        self._append(data)

    def _measure(self, data: str, value: str, *, text: bool) -> None:
        self._source.add(f"{data} = {value}.encode()" if text else f"{data} = {value}")
        self._source.add(f"n = len({data})")
        if text and not self._flexible:
            with self._source.block("if n > STRING_BYTES_MAX:"):
                self._source.add("raise StringTooLong(size_bytes=n)")

    def _array(self, value: str, field: Field) -> None:
        source = self._source
        element = field.element
        assert element is not None
        if self._version in field.nullable:
            with source.block(f"if {value} is None:"):
                source.add(f"{value} = ()")
                source.add("n = -1")
            with source.block("else:"):
                source.add(f"n = len({value})")
        else:
            source.add(f"n = len({value})")
        self._length("i", "write_uvarint(n + 1)")
        if element.kind == "fixed":
            assert element.code != "16s"
            with source.block(f"if {value}:"):
                self._append(f'pack(f">{{n}}{element.code}", *{value})')
        elif element.kind == "struct":
            assert element.struct is not None
            self._structs(value, schema_of(element.struct))
        else:
            item = source.name("item")
            with source.block(f"for {item} in {value}:"):
                self._field(item, element)
                self._flush()

    def _structs(self, value: str, schema: Schema) -> None:
        names = self._names(schema)
        targets = f"{', '.join(names.values())},"
        fields = plain_fields(schema, self._version)
        if all(field.kind == "fixed" for _, field in fields) and not tagged_fields(schema, self._version):
            run = [(self._fixed(names[name], field), field.code) for name, field in fields]
            if self._flexible:
                run.append(("", "x"))
            self._source.add(f"{self._parts} += [{self._packed(run)} for {targets} in {value}]")
            return
        with self._source.block(f"for {targets} in {value}:"):
            self._fields(names, schema)

    def _tags(self, names: dict[str, str], schema: Schema) -> None:
        known = tagged_fields(schema, self._version)
        if not known:
            self._run.append(("", "x"))
            return
        source = self._source
        self._flush()
        tags = source.name("tags")
        source.add(f"{tags} = []")
        for name, field in known:
            # A field at its default is not sent: that is how an old reader and a new one agree on its absence.
            with source.block(f"if {names[name]} != {source.value('default', field.default)}:"):
                outer, self._parts = self._parts, source.name("parts")
                source.add(f"{self._parts} = []")
                self._field(names[name], field)
                self._flush()
                source.add(f"{tags}.append(({field.tag}, join({self._parts})))")
                self._parts = outer
        self._append(f"write_tags({tags})")
