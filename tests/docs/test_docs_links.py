"""Links and paths: whatever a page points to inside this project is there."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name, prose, spans

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: Beginnings of paths that only this project has.
PLACES = tuple(
    f"{path.name}/" for path in (*ROOT.glob("[a-z]*"), ROOT / ".ci") if path.is_dir() and path.name != "data"
)


def anchors(page: Path) -> set[str]:
    """Return what headings can be linked by, as the usual renderers name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page

        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    named = {span for span in spans(page) if span.startswith(PLACES) and re.fullmatch(r"[\w./-]+", span)}

    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_every_page_is_reached_from_the_first_one() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target in LINK.findall(prose(page)) if "://" not in target)
        waiting += [(page.parent / target).resolve() for target in targets if target]

    # Records of decisions are found by their folder; the other pages are for people who do not look into folders.
    assert {name(page) for page in set(PAGES) - reached if page.parent.name != "adr"} == set()
