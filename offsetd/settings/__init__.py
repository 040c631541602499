"""What the daemon can be told: one table of settings, read from file, environment and flags, frozen at the start."""

from offsetd.settings.address import Address, parse_address
from offsetd.settings.error import ConfigError
from offsetd.settings.kinds import KnownTopic, RetentionOverride, shown
from offsetd.settings.load import load_settings
from offsetd.settings.table import BY_NAME, TABLE, Setting, Settings

__all__ = [
    "BY_NAME",
    "TABLE",
    "Address",
    "ConfigError",
    "KnownTopic",
    "RetentionOverride",
    "Setting",
    "Settings",
    "load_settings",
    "parse_address",
    "shown",
]
