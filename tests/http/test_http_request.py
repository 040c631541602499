"""Reading requests and writing responses, without sockets."""

import pytest

from offsetd.http.request import HEADER_BYTES_MAX, TEXT, Response, read_path


def status(received: bytes) -> int:
    answer = read_path(received)
    assert isinstance(answer, Response)
    return answer.status


def test_a_get_gives_its_path_without_the_query() -> None:
    assert read_path(b"GET /metrics?name=x HTTP/1.1\r\nHost: a\r\n\r\n") == "/metrics"


def test_every_prefix_of_a_request_waits_for_more() -> None:
    whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    assert [read_path(whole[:length]) for length in range(len(whole))] == [None] * len(whole)


@pytest.mark.parametrize("line", [b"", b"GET", b"GET /", b"GET / HTTP/2", b"GET metrics HTTP/1.1", b"GET / x HTTP/1.1"])
def test_what_is_not_http_is_a_bad_request(line: bytes) -> None:
    assert status(line + b"\r\n\r\n") == 400


@pytest.mark.parametrize("method", [b"POST", b"HEAD", b"DELETE", b"get"])
def test_only_get_is_served(method: bytes) -> None:
    assert status(method + b" / HTTP/1.1\r\n\r\n") == 405


def test_a_header_is_bounded_whole_or_not() -> None:
    assert status(b"a" * (HEADER_BYTES_MAX + 1)) == 431
    assert status(b"GET / HTTP/1.1\r\nX: " + b"a" * HEADER_BYTES_MAX + b"\r\n\r\n") == 431


def test_a_response_states_its_length_and_closes() -> None:
    encoded = Response(200, TEXT, b"ok\n").encoded()

    assert encoded.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 3\r\n" in encoded
    assert encoded.endswith(b"Connection: close\r\n\r\nok\n")
