"""Two codecs by other hands, read generically: their view of a message in our terms, and their bytes for it."""

import importlib
import io
import re
import warnings
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from kio.serial import entity_reader, entity_writer

from protocol.api import CONSUMER_GROUP_HEARTBEAT
from protocol.api_versions import ApiVersionsResponse
from protocol.schema import Field, Schema, schema_of
from tests.protocol.messages import Route

with warnings.catch_warnings():
    # Its way to read its own schemas is deprecated, which is no fault of ours.
    warnings.simplefilter("ignore", DeprecationWarning)
    _KAFKA_PYTHON = [
        importlib.import_module(f"kafka.protocol.{package}")
        for package in ("admin", "consumer", "metadata", "producer")
    ]

KIO_FIRST = {"OffsetCommit": 2, "OffsetFetch": 1, "ListOffsets": 1, "Produce": 3}
"""Kafka 4 dropped what came before, and kio with it."""

KAFKA_PYTHON_LACKS = {("OffsetCommit", 1), ("ListOffsets", 0)}
"""It takes these versions, but without the fields that only they had."""


def in_kio(route: Route) -> bool:
    return route.version >= KIO_FIRST.get(route.api.name, 0)


def in_kafka_python(route: Route) -> bool:
    # Of the newer group protocol it has nothing yet.
    return (route.api.name, route.version) not in KAFKA_PYTHON_LACKS and route.api.key != CONSUMER_GROUP_HEARTBEAT


def by_kio(route: Route, body: bytes) -> tuple[Any, bytes]:
    """Return what kio reads in ``body``, and how it writes that."""
    direction = "request" if route.is_request else "response"
    package = re.sub(r"(?<!^)(?=[A-Z])", "_", route.api.name).lower()
    module = importlib.import_module(f"kio.schema.{package}.v{route.version}.{direction}")
    cls = getattr(module, route.cls.__name__)
    entity, size = entity_reader(cls)(body, 0)
    assert size == len(body)
    out = io.BytesIO()
    entity_writer(cls)(out, entity)
    return _from_kio(schema_of(route.cls), route.version, entity), out.getvalue()


def _from_kio(schema: Schema, version: int, entity: Any) -> Any:
    declared = [(name, field) for name, field in schema.fields if version in field.versions]
    theirs = [field.name for field in fields(entity)]
    assert theirs == [name if name in theirs else name.removesuffix("_ms") for name, _ in declared]
    values = {
        name: _kio_value(field, version, getattr(entity, their_name))
        for their_name, (name, field) in zip(theirs, declared, strict=True)
    }
    return schema.cls(**values)


def _kio_value(field: Field, version: int, value: Any) -> Any:
    if field.code == "16s":
        return bytes(16) if value is None else value.bytes
    if value is None:
        return None
    if field.kind == "array":
        element = field.element
        assert element is not None
        return tuple(_kio_value(element, version, each) for each in value)
    if field.kind == "struct":
        assert field.struct is not None
        return _from_kio(schema_of(field.struct), version, value)
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return value


def for_kafka_python(route: Route, message: Any) -> Any:
    """Return the message as far as kafka-python takes it: an ApiVersions error it reads in version 0 alone."""
    if route.cls is ApiVersionsResponse and route.version > 0:
        return message._replace(error_code=0)
    return message


def by_kafka_python(route: Route, body: bytes) -> tuple[Any, bytes]:
    """Return what kafka-python reads in ``body``, and how it writes that."""
    name = route.cls.__name__
    cls = next(getattr(module, name) for module in _KAFKA_PYTHON if hasattr(module, name))
    read = cls.decode(body, version=route.version)
    return _from_kafka_python(schema_of(route.cls), route.version, read), bytes(read.encode())


def _from_kafka_python(schema: Schema, version: int, read: Any) -> Any:
    values = {
        name: _kafka_python_value(field, version, getattr(read, _KAFKA_PYTHON_NAMES.get(name, name)))
        for name, field in schema.fields
        if version in field.versions
    }
    return schema.cls(**values)


_KAFKA_PYTHON_NAMES = {
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
}


def _kafka_python_value(field: Field, version: int, value: Any) -> Any:
    if value is None:
        # It says None for a zero id, for an absent tagged struct and for operations that nobody asked for.
        return None if version in field.nullable else field.default
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, set):
        bits = sum(1 << bit for bit in value)
        return bits - (1 << 32) if bits >> 31 else bits
    if field.kind == "array":
        element = field.element
        assert element is not None
        return tuple(_kafka_python_value(element, version, each) for each in value)
    if field.kind == "struct":
        assert field.struct is not None
        return _from_kafka_python(schema_of(field.struct), version, value)
    return bytes(value) if field.kind == "bytes" else value
