"""File, environment and flags: which wins, and what is said of a mistake."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsetd.settings import TABLE, ConfigError, Settings, load_settings, shown


def file_of(folder: Path, text: str) -> Path:
    path = folder / "offsetd.toml"
    path.write_text(text)
    return path


def test_nothing_given_means_defaults() -> None:
    settings = load_settings(None, {"PATH": "/bin"}, {})

    assert settings == Settings.defaults()
    assert set(settings.sources.values()) == {"default"}
    assert set(settings.sources) == {about.name for about in TABLE}


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = file_of(tmp_path, 'broker.id = 2\nnum.partitions = 2\nlisteners = "127.0.0.1:2"\n')
    environment = {"OFFSETD_NUM_PARTITIONS": "3", "OFFSETD_LISTENERS": "127.0.0.1:3"}

    settings = load_settings(file, environment, {"listeners": "127.0.0.1:4"})

    assert (settings.broker_id, settings.num_partitions, settings.listeners.port) == (2, 3, 4)
    assert settings.sources["broker.id"] == "file offsetd.toml"
    assert settings.sources["num.partitions"] == "environment OFFSETD_NUM_PARTITIONS"
    assert settings.sources["listeners"] == "flag --listen"


@pytest.mark.parametrize(
    "text",
    [
        '"offsets.retention.minutes" = 20160',
        "offsets.retention.minutes = 20160",
        "[offsets.retention]\nminutes = 20160",
        '[offsets]\n"retention.minutes" = 20160',
    ],
)
def test_quoted_dotted_and_nested_keys_mean_the_same(tmp_path: Path, text: str) -> None:
    assert load_settings(file_of(tmp_path, text), {}, {}).offsets_retention_minutes == 20160


def test_an_unknown_key_is_named_with_its_source_and_the_nearest_one(tmp_path: Path) -> None:
    file = file_of(tmp_path, "offsets.retention.minuts = 5")

    with pytest.raises(ConfigError) as caught:
        load_settings(file, {}, {})

    assert str(caught.value) == (
        "offsets.retention.minuts (from file offsetd.toml) is not a setting; did you mean offsets.retention.minutes?"
    )
    assert (caught.value.key, caught.value.source) == ("offsets.retention.minuts", "file offsetd.toml")


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("OFFSETD_NUM_PARTITION", "OFFSETD_NUM_PARTITIONS"),
        ("OFFSETD_RETENTION_MINUTES", "OFFSETD_OFFSETS_RETENTION_MINUTES"),
        ("OFFSETD_XYZZY", "`offsetd config show`"),
    ],
)
def test_an_unknown_variable_is_an_error_too(variable: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{variable} \(from the environment\) is not a setting; .*{hint}"):
        load_settings(None, {variable: "1"}, {})


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("max.connections", "max.connections.total"), ("log.dirs", "data.dir"), ("metrics.groups", "metrics.groups.max")],
)
def test_other_names_of_a_setting_are_recognised(tmp_path: Path, key: str, nearest: str) -> None:
    """People bring Kafka's names; the error must lead them to ours."""
    with pytest.raises(ConfigError, match=f"did you mean {nearest}"):
        load_settings(file_of(tmp_path, f"{key} = 1"), {}, {})


def test_variables_that_are_no_settings_are_let_through() -> None:
    others = {"OFFSETD_FAILPOINTS": "x", "OFFSETD_FUZZ_SECONDS": "1", "OFFSETD_CONFIG": "f"}

    assert load_settings(None, others, {}) == Settings.defaults()


def test_an_unknown_flag_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^nope \(from a flag\)"):
        load_settings(None, {}, {"nope": "1"})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("broker.id", "one", "is 'one', want a whole number"),
        ("broker.id", "-1", "is -1, want 0..2147483647"),
        ("broker.id", "1_000", "is '1_000', want a whole number"),
        ("broker.id", "9" * 5000, "want a whole number"),
        ("topics.strict", "perhaps", "is 'perhaps', want true or false"),
        ("log.level", "loud", "want one of debug, info, warning, error"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "want a number from 0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "want a number from 0 to 1"),
        ("listeners", "9092", "has no port"),
        ("advertised.listeners", "host:0", "want a port of 1..65535"),
        ("cluster.id", "short", "want 22 characters"),
        ("data.dir", "", "want a path"),
        ("offsets.retention.overrides", "billing", "want PATTERN=MINUTES"),
        ("offsets.retention.overrides", "billing=0", "whose time is 0"),
    ],
)
def test_a_bad_value_is_named_with_its_source(name: str, text: str, says: str) -> None:
    variable = "OFFSETD_" + name.replace(".", "_").upper()

    with pytest.raises(ConfigError) as caught:
        load_settings(None, {variable: text}, {})

    assert str(caught.value).startswith(f"{name} (from environment {variable}) ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "line", ["broker.id = true", "broker.id = 1.5", "broker.id = []", "listeners = 9092", "topics.known = [1]"]
)
def test_a_value_of_the_wrong_type_in_the_file_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"\(from file offsetd\.toml\)"):
        load_settings(file_of(tmp_path, line), {}, {})


def test_a_table_in_place_of_a_value_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^broker\.id .* want a whole number"):
        load_settings(file_of(tmp_path, "[broker.id]\nx = 1"), {}, {})


def test_a_file_that_is_missing_or_not_toml_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.toml", {}, {})
    with pytest.raises(ConfigError, match="is not TOML"):
        load_settings(file_of(tmp_path, "= ="), {}, {})
    (tmp_path / "latin.toml").write_bytes(b'data.dir = "\xe9"')
    with pytest.raises(ConfigError, match="is not TOML"):
        load_settings(tmp_path / "latin.toml", {}, {})


def test_values_that_may_be_left_out_are_left_out_by_the_empty_string() -> None:
    settings = load_settings(None, {"OFFSETD_HTTP_LISTENERS": "", "OFFSETD_LOG_FLUSH_INTERVAL_MS": ""}, {})

    assert settings.http_listeners is None
    assert settings.log_flush_interval_ms is None


def test_every_value_as_shown_is_read_back_the_same() -> None:
    """What ``config show`` prints can be put into the environment."""
    settings = Settings.defaults(
        topics_known="a:1,b:2:5", offsets_retention_overrides="x-*=5,y=-1", advertised_listeners="[::1]:9"
    )
    environment = {about.environment: shown(settings.value(about.name)) for about in TABLE}

    assert load_settings(None, environment, {}) == settings


@given(name=st.sampled_from([about.name for about in TABLE]), text=st.text(max_size=30))
def test_any_text_is_a_value_or_a_clear_error(name: str, text: str) -> None:
    wrong: ConfigError | None = None
    try:
        load_settings(None, {}, {name: text})
    except ConfigError as error:
        wrong = error

    if wrong is not None:
        assert wrong.key in {name, "listeners"}
        assert str(wrong).startswith(wrong.key)
