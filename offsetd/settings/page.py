"""The settings page of the documentation, written from the table so that it cannot differ from it."""

from offsetd.settings.kinds import shown
from offsetd.settings.table import TABLE, Setting

HEAD = """\
# Settings

This page is made from the table in `offsetd/settings/table.py` by `offsetd config docs`; a test keeps it true.

A value comes from, in rising order: its default, the TOML file (`--config FILE` or `OFFSETD_CONFIG`), the environment,
a flag of the command line. `offsetd config show` prints each value with where it came from, `offsetd config check`
says whether they are right. A key that is not in this table is an error, in the file and in the environment alike.

In the file a key may be quoted, dotted or in nested tables; these mean the same:

```toml
"offsets.retention.minutes" = 20160
offsets.retention.minutes = 20160
[offsets.retention]
minutes = 20160
```

In the environment a name has `OFFSETD_` before it, dots become underscores and letters are upper case. Lists are TOML
arrays of strings in the file, and separated by commas in the environment. The empty string leaves out a value that may
be left out.

"Kafka" says whose name it is: *same* is Kafka's own, another name is what Kafka calls it, empty is ours alone.

| setting | default | Kafka | meaning | environment |
| --- | --- | --- | --- | --- |
"""


def settings_page() -> str:
    """Return ``docs/settings.md``, whole."""
    return HEAD + "".join(_row(about) for about in TABLE)


def _row(about: Setting) -> str:
    default = shown(about.default)
    default_cell = f"`{default}` {about.unit}".strip() if default else "empty"
    kafka = "*same*" if about.kafka_name == about.name else f"`{about.kafka_name}`" if about.kafka_name else ""
    meaning = f"{about.meaning} ({about.kind.label})"
    cells = (f"`{about.name}`", default_cell, kafka, meaning.replace("|", "\\|"), f"`{about.environment}`")
    return "| " + " | ".join(cells) + " |\n"
