"""The changelog's feed: valid Atom, an entry for each version, ids that stay."""

from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from scripts.site.feed import ATOM, read_releases, write_feed

NOW = datetime(2026, 11, 20, tzinfo=UTC)
CHANGELOG = """# Changelog

## Unreleased (0.2.0)

### Added

**For merchants**

- A new thing with `code` & more
  on two lines.
- A [page](docs/page.md).

### Fixed

For those who ran it before:

- A fault.

## 0.1.0 (2026-10-01)

- First.
"""


def name(tag: str) -> str:
    return f"{{{ATOM}}}{tag}"


def test_each_version_is_an_entry_with_its_own_id_and_date() -> None:
    feed = ElementTree.fromstring(write_feed(read_releases(CHANGELOG, NOW)).encode())
    entries = feed.findall(name("entry"))
    assert [entry.findtext(name("id")) for entry in entries] == [
        "urn:merchant-wallet:changelog:0.2.0",
        "urn:merchant-wallet:changelog:0.1.0",
    ]
    assert [entry.findtext(name("updated")) for entry in entries] == [
        "2026-11-20T00:00:00+00:00",
        "2026-10-01T00:00:00+00:00",
    ]
    assert entries[0].findtext(name("content")) == (
        "<h3>Added</h3><h4>For merchants</h4>"
        "<ul><li>A new thing with <code>code</code> &amp; more on two lines.</li><li>A page.</li></ul>"
        "<h3>Fixed</h3><p>For those who ran it before:</p><ul><li>A fault.</li></ul>"
    )


def test_the_feed_has_what_rfc_4287_requires_of_a_feed_and_of_each_entry(site: Path) -> None:
    feed = ElementTree.parse(site / "changelog.atom").getroot()
    for element in (feed, *feed.findall(name("entry"))):
        for required in ("id", "title", "updated"):
            assert len(element.findall(name(required))) == 1
            assert element.findtext(name(required))
    assert feed.findtext(f"{name('author')}/{name('name')}")
    assert feed.find(f"{name('link')}[@rel='self']") is not None


def test_an_entry_leads_to_its_version_on_the_page(site: Path) -> None:
    feed = ElementTree.parse(site / "changelog.atom").getroot()
    for link in feed.findall(f"{name('entry')}/{name('link')}"):
        page, _, anchor = link.attrib["href"].partition("#")
        assert f'id="{anchor}"' in (site / page / "index.html").read_text(encoding="utf-8")


def test_both_languages_offer_the_feed_on_every_page(site: Path) -> None:
    for page in ("index.html", "zh/index.html", "codes/40101/index.html"):
        assert 'type="application/atom+xml"' in (site / page).read_text(encoding="utf-8")
    assert (site / "zh/changelog.atom").read_bytes() == (site / "changelog.atom").read_bytes()
