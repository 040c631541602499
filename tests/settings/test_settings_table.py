"""The table itself: its names, its page, and what can be asked of loaded settings."""

from pathlib import Path

import pytest

from offsetd.settings import TABLE, Address, ConfigError, KnownTopic, RetentionOverride, Settings, parse_address
from offsetd.settings.page import settings_page

ROOT = Path(__file__).parents[2]


def test_no_key_is_a_prefix_of_another() -> None:
    """A key that is also a table could not be written in nested TOML."""
    names = [about.name for about in TABLE]

    assert [(a, b) for a in names for b in names if b.startswith(f"{a}.")] == []


def test_attributes_and_environment_names_are_unique() -> None:
    assert len({about.attribute for about in TABLE}) == len(TABLE)
    assert len({about.environment for about in TABLE}) == len(TABLE)


def test_every_attribute_is_its_name_with_underscores() -> None:
    settings = Settings.defaults()

    for about in TABLE:
        assert settings.value(about.name) == getattr(settings, about.name.replace(".", "_")) == about.default


def test_every_default_is_a_value_that_its_kind_takes() -> None:
    for about in TABLE:
        assert about.kind.read(about.default) == about.default


def test_names_with_units_end_in_them() -> None:
    for about in TABLE:
        if about.unit in {"ms", "minutes", "bytes"}:
            assert about.name.endswith(f".{about.unit}")


def test_meanings_are_one_sentence() -> None:
    for about in TABLE:
        assert about.meaning.endswith(".")
        assert ". " not in about.meaning


def test_the_settings_page_is_made_from_the_table() -> None:
    """Run ``offsetd config docs > docs/settings.md`` when this fails."""
    assert (ROOT / "docs/settings.md").read_text() == settings_page()


def test_defaults_take_overrides_through_the_same_checks() -> None:
    settings = Settings.defaults(listeners="127.0.0.1:0", broker_id=7)

    assert settings.listeners == Address("127.0.0.1", 0)
    assert settings.sources["broker.id"] == "code"
    assert settings.sources["data.dir"] == "default"
    with pytest.raises(ConfigError, match=r"broker\.id \(from code\) is -1"):
        Settings.defaults(broker_id=-1)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings.defaults().broker_id = 2  # type: ignore[misc]


def test_clients_are_told_the_listener_unless_another_address_is_stated() -> None:
    assert Settings.defaults().advertised() == ("127.0.0.1", 9092)
    assert Settings.defaults(listeners="127.0.0.1:0").advertised(bound_port=4711) == ("127.0.0.1", 4711)
    stated = Settings.defaults(listeners="0.0.0.0:9092", advertised_listeners="kafka.example:19092")
    assert stated.advertised(bound_port=9092) == ("kafka.example", 19092)


@pytest.mark.parametrize("listener", ["0.0.0.0:9092", "[::]:9092"])
def test_a_wildcard_listener_needs_an_advertised_address(listener: str) -> None:
    """Clients would otherwise be sent to 0.0.0.0, which is themselves."""
    with pytest.raises(ConfigError, match=r"listeners .* also set advertised\.listeners"):
        Settings.defaults(listeners=listener)


def test_a_wildcard_is_not_advertised() -> None:
    with pytest.raises(ConfigError, match=r"^advertised\.listeners .* cannot connect"):
        Settings.defaults(advertised_listeners="0.0.0.0:9092")


def test_the_memory_budget_holds_the_largest_request() -> None:
    with pytest.raises(ConfigError, match=r"queued\.max\.bytes .* want at least socket\.request\.max\.bytes"):
        Settings.defaults(queued_max_bytes=1024)


def test_history_that_is_not_kept_cannot_be_sealed() -> None:
    with pytest.raises(ConfigError, match=r"^history\.seal\.enabled .* there is no history to seal"):
        Settings.defaults(history_seal_enabled=True, history_enabled=False)


def test_the_first_matching_override_decides_the_retention() -> None:
    settings = Settings.defaults(
        offsets_retention_minutes=10,
        offsets_retention_overrides=["billing-*=20", "billing-eu=30", "audit=-1"],
    )

    assert settings.retention_ms_for("billing-eu") == 20 * 60_000
    assert settings.retention_ms_for("audit") is None
    assert settings.retention_ms_for("Billing-eu") == 10 * 60_000


def test_retention_can_be_for_ever() -> None:
    assert Settings.defaults(offsets_retention_minutes=-1).retention_ms_for("any") is None
    with pytest.raises(ConfigError, match=r"is 0, want -1 \(for ever\) or 1\.\."):
        Settings.defaults(offsets_retention_minutes=0)


def test_a_pattern_may_hold_an_equals_sign() -> None:
    settings = Settings.defaults(offsets_retention_overrides=["a=b=5"])

    assert settings.offsets_retention_overrides == (RetentionOverride("a=b", 5),)


def test_known_topics_may_state_their_ends() -> None:
    settings = Settings.defaults(topics_known="orders:2,events:3:100,audit:2:7/9")

    assert settings.topics_known == (
        KnownTopic("orders", 2, ()),
        KnownTopic("events", 3, (100, 100, 100)),
        KnownTopic("audit", 2, (7, 9)),
    )


@pytest.mark.parametrize(
    "bad", ["orders", "orders:0", "or ders:1", "..:1", "orders:2:1/2/3", "orders:1:-1", "a:1,a:2", "a:1:2:3"]
)
def test_a_topic_that_cannot_be_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match=r"^topics\.known"):
        Settings.defaults(topics_known=bad)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9092", ("127.0.0.1", 9092)),
        ("[::1]:9092", ("::1", 9092)),
        ("PLAINTEXT://broker.example:9092", ("broker.example", 9092)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address
    assert parse_address(str(parse_address(text))) == address


@pytest.mark.parametrize(
    "text", ["", "9092", ":9092", "::1:9092", "host:", "host:65536", "host:-1", "host:\u0661", "SSL://a:1", "a:1,b:2"]
)
def test_addresses_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_address(text)


def test_a_program_here_reaches_a_wildcard_listener_by_loopback() -> None:
    assert Address("0.0.0.0", 1).reachable() == ("127.0.0.1", 1)
    assert Address("::", 1).reachable() == ("::1", 1)
    assert Address("10.0.0.1", 1).reachable() == ("10.0.0.1", 1)
