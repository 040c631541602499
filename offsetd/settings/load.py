"""Settings from their three sources: file, then environment, then flags. The only reader of settings files."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from offsetd.settings.error import ConfigError
from offsetd.settings.table import BY_ENVIRONMENT, BY_NAME, ENVIRONMENT_PREFIX, TABLE, Settings

# Variables that begin like settings and are none: the file to read, and two for tests of the daemon.
OTHER_VARIABLES = frozenset({"OFFSETD_CONFIG", "OFFSETD_FAILPOINTS", "OFFSETD_FUZZ_SECONDS"})
FILE_BYTES_MAX = 1 << 20


def load_settings(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str]) -> Settings:
    """Read and check every setting; what comes later wins.

    Raises:
        ConfigError: the first thing that is wrong, with its key and its source.
    """
    values: dict[str, object] = {}
    sources = {about.name: "default" for about in TABLE}
    for name, value, source in _given(file, environment, flags):
        about = BY_NAME[name]
        try:
            values[about.attribute] = about.kind.read(value)
        except ValueError as error:
            raise ConfigError(f"{name} (from {source}) {error}", key=name, source=source) from None
        sources[name] = source
    return Settings(sources=MappingProxyType(sources), **values)  # type: ignore[arg-type]  # each read by its kind


def _given(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Iterator[tuple[str, object, str]]:
    """Yield name, raw value and source, weakest source first."""
    if file is not None:
        source = f"file {file.name}"
        for key, value in _flat(_document(file), ""):
            if key not in BY_NAME:
                raise _unknown(key, key, source)
            yield key, value, source
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in BY_ENVIRONMENT:
            guess = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
            raise _unknown(variable, guess, "the environment")
        yield BY_ENVIRONMENT[variable].name, environment[variable], f"environment {variable}"
    for name, text in flags.items():
        if name not in BY_NAME:
            raise _unknown(name, name, "a flag")
        yield name, text, f"flag {BY_NAME[name].flag or '--' + name}"


def _document(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            text = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"settings file {file} cannot be read: {error.strerror}", source=str(file)) from error
    if len(text) > FILE_BYTES_MAX:
        raise ConfigError(f"settings file {file} is larger than {FILE_BYTES_MAX} bytes", source=str(file))
    try:
        return cast("dict[str, object]", tomllib.loads(text.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"settings file {file} is not TOML: {error}", source=str(file)) from error


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    """Yield dotted keys: quoted, dotted and nested keys all mean the same."""
    for key, value in table.items():
        if isinstance(value, dict) and prefix + key not in BY_NAME:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _unknown(said: str, key: str, source: str) -> ConfigError:
    """Say what is unknown in the words of its source, and the setting that was probably meant."""
    nearest = _nearest(key)
    if nearest and said.startswith(ENVIRONMENT_PREFIX):
        nearest = BY_NAME[nearest].environment
    hint = f"did you mean {nearest}?" if nearest else "`offsetd config show` lists them all"
    return ConfigError(f"{said} (from {source}) is not a setting; {hint}", key=said, source=source)


def _nearest(key: str) -> str:
    """Prefer the key that this one is the beginning or the end of, then the most alike one."""
    if longer := [name for name in BY_NAME if name.startswith(f"{key}.") or name.endswith(f".{key}")]:
        return min(longer, key=len)
    by_kafka_name = {about.kafka_name: about.name for about in TABLE if about.kafka_name}
    if key in by_kafka_name:
        return by_kafka_name[key]
    alike = difflib.get_close_matches(key, [*BY_NAME, *by_kafka_name], n=1, cutoff=0.6)
    return by_kafka_name.get(alike[0], alike[0]) if alike else ""
