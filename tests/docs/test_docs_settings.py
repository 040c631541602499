"""Settings: whatever a page calls one is in the table, by its right name."""

import re
from pathlib import Path

import pytest

from offsetd.settings import TABLE
from offsetd.settings.load import OTHER_VARIABLES
from tests.docs.pages import PAGES, ROOT, name, spans

#: Made from the table itself, and names Kafka's settings beside ours.
GENERATED = ROOT / "docs/settings.md"
#: Files; and what is named after offsetd itself is a package or an application, no setting.
OTHERS = re.compile(r"^offsetd\.|\.(md|py|sh|toml|yml|yaml|json|txt|xml|sysusers|service|log|segment|tmp|new|rebuilt)$")
SETTING = re.compile(r"([a-z]+(?:\.[a-z]+)+)(?:\s*=.*)?")
VARIABLE = re.compile(r"\bOFFSETD_[A-Z_]+\b")
BY_HAND = [page for page in PAGES if page != GENERATED]


@pytest.mark.parametrize("page", BY_HAND, ids=name)
def test_every_setting_that_is_named_exists(page: Path) -> None:
    matches = (SETTING.fullmatch(span) for span in spans(page))
    named = {match[1] for match in matches if match is not None and not OTHERS.search(match[1])}

    assert named - {about.name for about in TABLE} == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_variable_that_is_named_exists(page: Path) -> None:
    known = {about.environment for about in TABLE} | OTHER_VARIABLES

    assert set(VARIABLE.findall(page.read_text())) - known == set()


def test_every_limit_on_clients_is_explained_to_operators() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    limits = {
        about.name
        for about in TABLE
        if re.match(r"(socket|response|request|requests|queued|max|connections)\.", about.name)
    }

    assert len(limits) >= 9
    assert {limit for limit in limits if f"`{limit}`" not in text} == set()
