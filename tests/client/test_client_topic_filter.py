"""Topic filters: as the older high-level consumer read them."""

import pytest

from offsetd.client.topic_filter import BlackList, WhiteList


@pytest.mark.parametrize(
    ("expression", "allowed", "kept_out"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", "Orders"]),
        ("orders,bills", ["orders", "bills"], ["orders,bills", "order"]),
        ("white1,white2", ["white1", "white2"], ["black1"]),
        ("order.*", ["orders", "order", "order.eu"], ["my-orders"]),
        (" 'orders, bills' ", ["orders", "bills"], [" orders"]),
        ('"orders"', ["orders"], ['"orders"']),
        ("a|ab", ["a", "ab"], ["abc"]),
        ("[0-9]+", ["42"], ["4a"]),
        (".*", ["anything"], []),
    ],
)
def test_a_white_list_lets_through_what_matches_as_a_whole(
    expression: str, allowed: list[str], kept_out: list[str]
) -> None:
    white, black = WhiteList(expression), BlackList(expression)

    assert all(white.allows(topic) for topic in allowed)
    assert not any(white.allows(topic) for topic in kept_out)
    assert not any(black.allows(topic) for topic in allowed)
    assert all(black.allows(topic) for topic in kept_out)


def test_what_is_no_expression_is_said_when_the_filter_is_made() -> None:
    with pytest.raises(ValueError, match=r"topic filter 'orders\(' is no regular expression"):
        WhiteList("orders(")


def test_a_filter_shows_what_it_is() -> None:
    assert repr(BlackList("orders")) == "BlackList('orders')"
