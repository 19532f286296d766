"""The changelog as a page and as an Atom feed (RFC 4287), both from `CHANGELOG.md`.

Rules: a version is one entry. Its id names the version, so a reader shows it once; a correction of its text
changes `updated` alone. The date of an entry is that of its heading, or of the last commit while it is
unreleased.
"""

import re
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from typing import Final, NamedTuple
from xml.etree import ElementTree

ATOM: Final = "http://www.w3.org/2005/Atom"
FEED: Final = "changelog.atom"
_ID: Final = "urn:merchant-wallet:changelog"
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^(?=- |### )|\n\n", re.MULTILINE)
_TAGS: Final = {"- ": "li", "### ": "h3", "**": "h4"}


class Release(NamedTuple):
    """One version of the changelog. `at` is when it came out."""

    title: str
    version: str
    at: datetime
    text: str


def read_releases(text: str, now: datetime) -> list[Release]:
    """The versions of a changelog, newest first. An unreleased one is dated `now`."""
    parts = _HEADING.split(text)[1:]
    releases = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        version = re.search(r"\d+\.\d+\.\d+", title)
        day = re.search(r"\d{4}-\d\d-\d\d", title)
        at = datetime.fromisoformat(day[0]).replace(tzinfo=UTC) if day else now
        releases.append(Release(title, version[0] if version else title, at, body.strip()))
    return releases


def write_feed(releases: list[Release]) -> str:
    """The feed. Links are relative to it, so it works wherever the site is."""
    ElementTree.register_namespace("", ATOM)
    feed = ElementTree.Element(f"{{{ATOM}}}feed")
    newest = max((release.at for release in releases), default=datetime(1970, 1, 1, tzinfo=UTC))
    _add(feed, "id", _ID)
    _add(feed, "title", "merchant-wallet: changelog")
    _add(feed, "updated", newest.isoformat())
    _add(_add(feed, "author"), "name", "merchant-wallet")
    _add(feed, "link", rel="self", href=FEED)
    _add(feed, "link", rel="alternate", href="promises/changelog/")
    for release in releases:
        entry = _add(feed, "entry")
        _add(entry, "id", f"{_ID}:{release.version}")
        _add(entry, "title", release.title)
        _add(entry, "updated", release.at.isoformat())
        _add(entry, "link", rel="alternate", href=f"promises/changelog/#{release.version.replace('.', '-')}")
        _add(entry, "content", _write_html(release.text), type="html")
    return ElementTree.tostring(feed, encoding="unicode", xml_declaration=True) + "\n"


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
    made = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    made.text = text or None
    return made


def _write_html(text: str) -> str:
    """Headings, paragraphs and lists as HTML. Of marks within a line code alone is kept."""
    blocks = [" ".join(block.split()) for block in _BLOCK.split(text) if block.strip()]
    html = []
    for is_list, group in groupby(blocks, lambda block: block.startswith("- ")):
        written = "".join(_write_block(block) for block in group)
        html.append(f"<ul>{written}</ul>" if is_list else written)
    return "".join(html)


def _write_block(block: str) -> str:
    tag = next((tag for mark, tag in _TAGS.items() if block.startswith(mark)), "p")
    words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.sub(r"^(?:- |### |\*\*)|\*\*$", "", block))
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words, quote=False))
    return f"<{tag}>{marked}</{tag}>"


def write_page(releases: list[Release], title: str, intro: str) -> str:
    """The changelog as a page."""
    parts = [f"# {title}\n\n{intro}\n"]
    for release in releases:
        anchor = release.version.replace(".", "-")
        parts.append(f"## {release.title} {{#{anchor}}}\n\n{release.text}\n")
    return "\n".join(parts)
