"""Addresses as people write them."""

import pytest

from offsetd.client.address import Address, parse_bootstrap


def test_addresses_come_as_one_text_or_as_a_list_each_once() -> None:
    assert parse_bootstrap("one:9092, two:9093,") == (Address("one", 9092), Address("two", 9093))
    assert parse_bootstrap(["one:9092", "two:9093,one:9092"]) == (Address("one", 9092), Address("two", 9093))


def test_an_ipv6_host_stands_in_brackets() -> None:
    (address,) = parse_bootstrap("[::1]:9092")

    assert address == Address("::1", 9092)
    assert str(address) == "[::1]:9092"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no bootstrap address"),
        (",", "no bootstrap address"),
        ("localhost", "lacks its host or its port"),
        (":9092", "lacks its host or its port"),
        ("host:", "no port in 1..65535"),
        ("host:0", "no port in 1..65535"),
        ("host:65536", "no port in 1..65535"),
        ("host:\u0661", "no port in 1..65535"),
        ("::1:9092", "without brackets"),
    ],
)
def test_what_is_no_address_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_bootstrap(text)
