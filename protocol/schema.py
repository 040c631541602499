"""How a message is declared: once, for all its versions, as a ``NamedTuple`` whose defaults say the wire type.

The specifiers claim to return the value's own type, so that mypy checks a declaration against its annotation;
the decorators then put Kafka's default of each field in their place. Bytes are the compiler's business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast, overload

from protocol.wire import ZERO_UUID

T = TypeVar("T")
Version = int
Kind = Literal["fixed", "string", "bytes", "array", "struct"]

VERSION_MAX: Final = 0x7FFF


class Versions(NamedTuple):
    """A closed range of versions."""

    first: Version
    last: Version

    def __contains__(self, version: object) -> bool:
        """Return whether the range holds ``version``."""
        return isinstance(version, int) and self.first <= version <= self.last


#: Begins above every version, so that "from its first version on" is never true of it.
NEVER: Final = Versions(VERSION_MAX + 1, -1)


def parse_versions(text: str) -> Versions:
    """Read Kafka's notation: ``3``, ``3+``, ``3-5``, or nothing for no version at all."""
    if not text:
        return NEVER
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its wire type, and the versions that have it."""

    kind: Kind
    versions: Versions
    nullable: Versions
    default: Any
    code: str = ""
    """Of a fixed field: its character in a ``Struct`` format."""
    tag: int | None = None
    element: "Field | None" = None
    struct: type | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A struct's fields, in the order of the wire."""

    cls: type
    fields: tuple[tuple[str, Field], ...]


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """What only a whole request or response has."""

    cls: type
    api_key: int
    versions: Versions
    flexible: Versions


_schemas: dict[type, Schema] = {}
_messages: dict[type, MessageInfo] = {}


def schema_of(cls: type) -> Schema:
    """Return the declared fields of a struct or message."""
    return _schemas[cls]


def message_info(cls: type) -> MessageInfo:
    """Return the API and the versions of a declared message."""
    return _messages[cls]


def struct(cls: type[T]) -> type[T]:
    """Declare a struct inside messages."""
    declared = cast("Any", cls)
    fields: dict[str, Field] = {name: declared._field_defaults[name] for name in declared._fields}
    assert all(isinstance(field, Field) for field in fields.values())
    defaults = {name: field.default for name, field in fields.items()}
    declared._field_defaults = defaults
    declared.__new__.__defaults__ = tuple(defaults.values())
    _schemas[cls] = Schema(cls=cls, fields=tuple(fields.items()))
    return cls


def message(*, api_key: int, versions: str, flexible: str) -> Callable[[type[T]], type[T]]:
    """Declare a whole request or response."""

    def declare(cls: type[T]) -> type[T]:
        struct(cls)
        _messages[cls] = MessageInfo(
            cls=cls, api_key=api_key, versions=parse_versions(versions), flexible=parse_versions(flexible)
        )
        return cls

    return declare


def _field(
    kind: Kind,
    versions: str,
    default: object,
    *,
    nullable: str = "",
    code: str = "",
    tag: int | None = None,
    element: Field | None = None,
    struct: type | None = None,
) -> Any:
    return Field(
        kind=kind,
        versions=parse_versions(versions),
        nullable=parse_versions(nullable),
        default=default,
        code=code,
        tag=tag,
        element=element,
        struct=struct,
    )


def boolean(versions: str = "0+", *, default: bool = False, tag: int | None = None) -> bool:
    """Declare a byte, of which any value but zero is true."""
    return cast("bool", _field("fixed", versions, default, code="?", tag=tag))


def int8(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> int:
    """Declare a signed number of one byte."""
    return cast("int", _field("fixed", versions, default, code="b", tag=tag))


def int16(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> int:
    """Declare a signed number of two bytes."""
    return cast("int", _field("fixed", versions, default, code="h", tag=tag))


def int32(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> int:
    """Declare a signed number of four bytes."""
    return cast("int", _field("fixed", versions, default, code="i", tag=tag))


def int64(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> int:
    """Declare a signed number of eight bytes."""
    return cast("int", _field("fixed", versions, default, code="q", tag=tag))


def uuid(versions: str = "0+", *, default: bytes = ZERO_UUID, tag: int | None = None) -> bytes:
    """Declare an id of 16 bytes, most significant first."""
    return cast("bytes", _field("fixed", versions, default, code="16s", tag=tag))


def string(versions: str = "0+", *, default: str = "", tag: int | None = None) -> str:
    """Declare a text that is never null."""
    return cast("str", _field("string", versions, default, tag=tag))


def nullable_string(
    versions: str = "0+", *, nullable: str = "0+", default: str | None = "", tag: int | None = None
) -> str | None:
    """Declare a text that may be null in the versions named by ``nullable``."""
    return cast("str | None", _field("string", versions, default, nullable=nullable, tag=tag))


def binary(versions: str = "0+") -> bytes:
    """Declare bytes that are nobody's business here: what members say to one another."""
    return cast("bytes", _field("bytes", versions, b""))


def nullable_bytes(versions: str = "0+", *, nullable: str = "0+", default: bytes | None = None) -> bytes | None:
    """Declare bytes that may be null, which is how records travel."""
    return cast("bytes | None", _field("bytes", versions, default, nullable=nullable))


@overload
def array(element: type[T], versions: str = "0+", *, tag: int | None = None) -> tuple[T, ...]: ...
@overload
def array(element: T, versions: str = "0+", *, tag: int | None = None) -> tuple[T, ...]: ...
def array(element: object, versions: str = "0+", *, tag: int | None = None) -> object:
    """Declare an array of a struct, or of what another specifier says."""
    return _field("array", versions, (), element=_element(element), tag=tag)


@overload
def nullable_array(element: type[T], versions: str = "0+", *, nullable: str = "0+") -> tuple[T, ...] | None: ...
@overload
def nullable_array(element: T, versions: str = "0+", *, nullable: str = "0+") -> tuple[T, ...] | None: ...
def nullable_array(element: object, versions: str = "0+", *, nullable: str = "0+") -> object:
    """Declare an array that may be null in the versions named by ``nullable``."""
    return _field("array", versions, (), nullable=nullable, element=_element(element))


def nested(cls: type[T], versions: str = "0+", *, tag: int) -> T:
    """Declare a struct of its own in the tagged section; its default is the struct of all defaults."""
    return cast("T", _field("struct", versions, cls(), tag=tag, struct=cls))


def nullable_nested(cls: type[T], versions: str = "0+", *, nullable: str = "0+") -> T | None:
    """Declare a struct in the body that may be null: a byte before it says whether it is there."""
    return cast("T | None", _field("struct", versions, None, nullable=nullable, struct=cls))


def _element(element: object) -> Field:
    if isinstance(element, Field):
        return element
    assert isinstance(element, type)
    return cast("Field", _field("struct", "0+", None, struct=element))
