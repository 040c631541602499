"""Messages made from the declarations themselves: any value that a field of a version may hold."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from protocol.api import APIS, Api, Request, Response, encode_request
from protocol.errors import Code
from protocol.schema import Field, schema_of

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


class Route(NamedTuple):
    """One direction of one version of one API."""

    api: Api
    version: int
    is_request: bool

    @property
    def cls(self) -> type[Request] | type[Response]:
        return self.api.request if self.is_request else self.api.response

    def __str__(self) -> str:
        return f"{self.cls.__name__}-v{self.version}"


def routes() -> list[Route]:
    return [
        Route(api, version, is_request)
        for api in APIS.values()
        for version in range(api.min_version, api.max_version + 1)
        for is_request in (True, False)
    ]


def request_routes() -> list[Route]:
    return [route for route in routes() if route.is_request]


def messages(cls: type, version: int, *, records: bool = True) -> st.SearchStrategy[Any]:
    """Any message of a version; fields it lacks stay at their defaults."""
    fields = {
        name: _values(name, field, version, records=records)
        for name, field in schema_of(cls).fields
        if version in field.versions
    }
    # Not st.builds, which makes values up for the fields of a NamedTuple that have defaults.
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


def _values(name: str, field: Field, version: int, *, records: bool) -> st.SearchStrategy[Any]:
    values: st.SearchStrategy[Any]
    match field.kind:
        case "fixed":
            values = _fixed(name, field.code)
        case "string":
            values = st.one_of(st.sampled_from(["", "orders", "ä群😀", "x" * 126, "y" * 127, "z" * 300]), _TEXT)
        case "bytes":
            values = st.binary(max_size=40) if records or name != "records" else st.nothing()
        case "array":
            assert field.element is not None
            element = _values(name, field.element, version, records=records)
            values = st.lists(element, max_size=3).map(tuple)
        case "struct":
            assert field.struct is not None
            values = messages(field.struct, version, records=records)
    return st.none() | values if version in field.nullable else values


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def _fixed(name: str, code: str) -> st.SearchStrategy[Any]:
    if code == "?":
        return st.booleans()
    if code == "16s":
        return st.binary(min_size=16, max_size=16)
    if name == "error_code":
        return st.sampled_from([int(each) for each in Code])
    if name.endswith("_ms"):
        # One of the oracles makes time spans of these, which do not reach as far as the wire.
        return st.integers(0, 1_000_000)
    top = 1 << (_BITS[code] - 1)
    return st.sampled_from([0, -1, 1, top - 1, -top]) | st.integers(-top, top - 1)


def sample(cls: type, version: int) -> Any:
    """One message in which every array has two elements and nothing is null: the longest walk for a decoder."""
    return cls(
        **{
            name: _sample_value(name, field, version)
            for name, field in schema_of(cls).fields
            if version in field.versions
        }
    )


def _sample_value(name: str, field: Field, version: int) -> Any:
    match field.kind:
        case "fixed":
            return {"?": True, "16s": bytes(range(16))}.get(field.code, 3)
        case "string":
            return f"a {name}"
        case "bytes":
            return b"some records"
        case "array":
            assert field.element is not None
            return (_sample_value(name, field.element, version),) * 2
        case "struct":
            assert field.struct is not None
            return sample(field.struct, version)


def sample_frame(route: Route) -> bytes:
    """A valid request frame without its size."""
    request = sample(route.api.request, route.version)
    return encode_request(route.api.key, route.version, 7, "cli", request)[4:]
