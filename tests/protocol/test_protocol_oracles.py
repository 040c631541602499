"""Every version of every API, against two codecs by other hands."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.decoding import compile_decoder
from protocol.encoding import compile_encoder
from tests.protocol import oracles
from tests.protocol.messages import Route, messages, routes

_quick = settings(
    max_examples=12, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def _codec(route: Route) -> tuple[Any, Any]:
    return compile_encoder(route.cls, route.version), compile_decoder(route.cls, route.version)


@pytest.mark.parametrize("route", routes(), ids=str)
@_quick
@given(data=st.data())
def test_what_is_written_is_read_back(route: Route, data: st.DataObject) -> None:
    encode, decode = _codec(route)
    message = data.draw(messages(route.cls, route.version))

    body = encode(message)

    assert decode(body, 0) == message
    assert decode(b"head" + body + b"trailing", 4) == message


@pytest.mark.parametrize("route", filter(oracles.in_kio, routes()), ids=str)
@_quick
@given(data=st.data())
def test_kio_reads_and_writes_the_same(route: Route, data: st.DataObject) -> None:
    encode, _ = _codec(route)
    # kio looks into records, where we do not.
    message = data.draw(messages(route.cls, route.version, records=False))
    body = encode(message)

    assert oracles.by_kio(route, body) == (message, body)


@pytest.mark.parametrize("route", filter(oracles.in_kafka_python, routes()), ids=str)
@_quick
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same(route: Route, data: st.DataObject) -> None:
    encode, _ = _codec(route)
    message = data.draw(messages(route.cls, route.version))
    body = encode(message)

    assert oracles.by_kafka_python(route, body) == (message, body)
