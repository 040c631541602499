"""The error that stops a start: a setting that is unknown or cannot be what it was set to."""


class ConfigError(Exception):
    """A setting is wrong; the text is one sentence that names it, where it came from and what to do."""

    def __init__(self, message: str, *, key: str = "", source: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.source = source
