"""The flags that say settings, and how a command gets its settings from them; shared by all that need any."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click

from offsetd.settings import Settings, load_settings

P = ParamSpec("P")
R = TypeVar("R")
CONFIG_VARIABLE = "OFFSETD_CONFIG"
# Flag, the setting it gives, what it takes, what help says.
FLAGS = (
    ("--data", "data.dir", "DIR", "Data directory (default: ./data)."),
    ("--listen", "listeners", "HOST:PORT", "Where to listen (default: 127.0.0.1:9092)."),
    ("--advertise", "advertised.listeners", "HOST:PORT", "Where clients connect (default: where we listen)."),
    ("--http", "http.listeners", "HOST:PORT", "Metrics and health (default: 127.0.0.1:9192; empty: off)."),
)


def with_settings(function: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
    """Give a command the flags that say settings, and the loaded settings as its first argument."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> R:
        file = kwargs.pop("config_file")
        assert file is None or isinstance(file, Path)
        given = {name: kwargs.pop(_parameter(flag)) for flag, name, _, _ in FLAGS}
        flags = {name: str(text) for name, text in given.items() if text is not None}
        return function(settings_from(file, flags), *args, **kwargs)

    decorated: Callable[P, R] = command
    for flag, _, metavar, about in reversed(FLAGS):
        decorated = click.option(flag, _parameter(flag), metavar=metavar, help=about)(decorated)
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"TOML file of settings (default: {CONFIG_VARIABLE}, else none).",
    )(decorated)


def with_data(function: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
    """Give a command that looks into a data directory the flags that say which, and the settings that follow."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> R:
        file, data = kwargs.pop("config_file"), kwargs.pop("data")
        assert file is None or isinstance(file, Path)
        return function(settings_from(file, {} if data is None else {"data.dir": str(data)}), *args, **kwargs)

    named = click.option("--data", metavar="DIR", help="Data directory (default: data.dir, else ./data).")(command)
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"TOML file of settings: data.dir and broker.id are used (default: {CONFIG_VARIABLE}, else none).",
    )(named)


def settings_from(file: Path | None, flags: dict[str, str]) -> Settings:
    """Load the settings of this process: the named file or the one that the environment names, environment, flags."""
    named = os.environ.get(CONFIG_VARIABLE, "")
    return load_settings(file or (Path(named) if named else None), os.environ, flags)


def _parameter(flag: str) -> str:
    return f"flag_{flag.removeprefix('--')}"
