"""Every version of every API, against two codecs by other hands."""

from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from protocol.decoding import compile_decoder
from protocol.encoding import compile_encoder
from tests.protocol import oracles
from tests.protocol.messages import Route, messages, routes

_quick = settings(
    max_examples=8,
    # A counterexample need not be the smallest: looking for that takes minutes with codecs this slow.
    phases=[Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# Made once: compiling a codec or a strategy costs more than a few uses of it.
_messages = cache(lambda route: messages(route.cls, route.version))
_recordless = cache(lambda route: messages(route.cls, route.version, records=False))
_encoder = cache(lambda route: compile_encoder(route.cls, route.version))
_decoder = cache(lambda route: compile_decoder(route.cls, route.version))


@pytest.mark.parametrize("route", routes(), ids=str)
@_quick
@given(data=st.data())
def test_what_is_written_is_read_back(route: Route, data: st.DataObject) -> None:
    message = data.draw(_messages(route))
    decode = _decoder(route)

    body = _encoder(route)(message)

    assert decode(body, 0) == message
    assert decode(b"head" + body + b"trailing", 4) == message


@pytest.mark.parametrize("route", [route for route in routes() if oracles.in_kio(route)], ids=str)
@_quick
@given(data=st.data())
def test_kio_reads_and_writes_the_same(route: Route, data: st.DataObject) -> None:
    # kio looks into records, where we do not.
    message = data.draw(_recordless(route))

    body = _encoder(route)(message)

    assert oracles.by_kio(route, body) == (message, body)


@pytest.mark.parametrize("route", [route for route in routes() if oracles.in_kafka_python(route)], ids=str)
@_quick
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same(route: Route, data: st.DataObject) -> None:
    message = oracles.for_kafka_python(route, data.draw(_messages(route)))

    body = _encoder(route)(message)

    assert oracles.by_kafka_python(route, body) == (message, body)
