"""Text of generated functions: lines, names that do not collide, and the values those names stand for.

The generators of decoders and encoders share it. What the lines do is theirs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct, calcsize
from typing import Any

from protocol.schema import Field, Schema, schema_of


class Source:
    """A function under construction."""

    def __init__(self, header: str) -> None:
        self._lines = [header]
        self._depth = 1
        self._names = 0
        self.values: dict[str, Any] = {}

    def add(self, line: str) -> None:
        """Append a line at the present depth."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """Append a line that opens a block, and indent what follows."""
        self.add(line)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """Return a name nobody else uses."""
        self._names += 1
        return f"{stem}_{self._names}"

    def value(self, stem: str, value: object) -> str:
        """Bind ``value`` to a global of the function, and return its name."""
        for name, known in self.values.items():
            if known is value:
                return name
        name = self.name(stem)
        self.values[name] = value
        return name

    def unpack(self, codes: str) -> str:
        """Return the name of a bound ``Struct.unpack_from``."""
        return self._prepared("unpack", codes, Struct(f">{codes}").unpack_from)

    def pack(self, codes: str) -> str:
        """Return the name of a bound ``Struct.pack``."""
        return self._prepared("pack", codes, Struct(f">{codes}").pack)

    def _prepared(self, verb: str, codes: str, function: Callable[..., Any]) -> str:
        name = f"{verb}_{codes.replace('?', 'bool')}"
        self.values[name] = function
        return name

    def text(self) -> str:
        """Return the whole function."""
        return "\n".join(self._lines) + "\n"

    def compile(self, name: str, title: str) -> Any:
        """Return the function ``name`` as running code; ``title`` stands in tracebacks."""
        exec(compile(self.text(), f"<{title}>", "exec"), self.values)  # noqa: S102  (made of declarations alone)
        return self.values[name]


def size_of(codes: str) -> int:
    """Return the bytes that a run of fixed fields takes."""
    return calcsize(f">{codes}")


def plain_fields(schema: Schema, version: int) -> list[tuple[str, Field]]:
    """Return the fields in the body of ``version``, without tagged ones."""
    return [(name, field) for name, field in schema.fields if version in field.versions and field.tag is None]


def tagged_fields(schema: Schema, version: int) -> list[tuple[str, Field]]:
    """Return the tagged fields of ``version`` in ascending order of their tags."""
    fields = [(name, field) for name, field in schema.fields if version in field.versions and field.tag is not None]
    return sorted(fields, key=lambda item: item[1].tag or 0)


def least_size(field: Field, version: int, *, flexible: bool) -> int:
    """Return the fewest bytes a value can take: what bounds a count by the bytes that are left."""
    match field.kind:
        case "fixed":
            return size_of(field.code)
        case "struct" if version in field.nullable:
            return 1
        case "string":
            return 1 if flexible else 2
        case "bytes" | "array":
            return 1 if flexible else 4
        case "struct":
            assert field.struct is not None
            fields = plain_fields(schema_of(field.struct), version)
            return sum(least_size(each, version, flexible=flexible) for _, each in fields) + flexible
