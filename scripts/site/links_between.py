"""Where links between documents lead on the site. Pure, apart from reading the documents.

Rules: a link to a heading leads to the page that has the heading. A link to a file that is no part of the
site (a decision, the code) becomes plain text. A drawing becomes the figure itself.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from scripts.site.drawings import draw
from scripts.site.plan import INTEGRATING, list_pages
from scripts.site.reference import find, split
from scripts.site.texts import WRITTEN, read

from merchant_wallet.base.codes import CODES

HOMES: Final = {
    INTEGRATING: "integrating",
    "operating.md": "operating/index",
    "settings.md": "operating/settings",
    "chains.md": "operating/chains",
    "scaling.md": "operating/scaling",
    "debugging.md": "operating/debugging",
}
"""The page for a link to a whole document."""
READMES: Final = {
    "client": "clients/python",
    **{f"clients/{name}": f"clients/{name}" for name in ("typescript", "php", "go", "java")},
}
"""The page of each client's README, by its folder."""
IN_BOTH: Final = {INTEGRATING: HOMES[INTEGRATING]}
"""Of these, the one that is in both languages."""
_DRAWING: Final = re.compile(r"images/(flow-\w+)\.svg")
SECTION: Final = re.compile(r"^<!-- section: ([\w-]+)( own)? -->$", re.MULTILINE)
_LINK = re.compile(
    r"(?P<code>```.*?```|`[^`\n]*`)|(?P<mark>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)
"""A link, or code, in which nothing is a link."""


@cache
def locate() -> dict[str, dict[str, str]]:
    """For each document the page of each of its headings, by anchor."""
    places: dict[str, dict[str, str]] = {name: {} for name in HOMES}
    for page in list_pages("en"):
        sections = split(read(f"docs/{page.source}"))
        for anchor, own in _list_parts(page.path, page.sections):
            found = sections if anchor == "*" else find(sections, anchor, own=own)
            for section in found:
                # A heading that has a page of its own keeps it.
                places[page.source].setdefault(section.anchor, page.path)
    for page in list_pages("en"):
        for anchor in page.sections:
            if anchor != "*":
                places[page.source][anchor] = page.path
    return places


def _list_parts(path: str, sections: tuple[str, ...]) -> list[tuple[str, bool]]:
    written = WRITTEN / "en" / f"{path}.md"
    if written.exists():
        text = written.read_text(encoding="utf-8")
        return [(found[1], bool(found[2])) for found in SECTION.finditer(text)]
    return [(anchor, False) for anchor in sections]


def link(page: str, target: str, anchor: str = "") -> str:
    """The link from one page to another, as MkDocs reads it."""
    name = os.path.relpath(f"{target}.md", os.path.dirname(page) or ".")
    return f"{name}#{anchor}" if anchor else name


def rewrite(text: str, page: str, source: str, homes: Mapping[str, str] = HOMES) -> str:
    """The text of a document with its links as they must be on a page.

    Links to documents that are not in `homes` become plain text.
    """

    def lead(found: re.Match[str]) -> str:
        target = found["target"]
        if found["code"] or target.startswith("https://"):
            return found[0]
        if found["mark"] and (drawing := _DRAWING.fullmatch(target)):
            return draw(drawing[1], "en")
        name, _, anchor = target.partition("#")
        if not name and source not in homes:
            return found[0]
        folder = os.path.normpath(f"docs/{os.path.dirname(name)}")
        if name.endswith("vectors/README.md"):
            return f"[{found['words']}]({link(page, 'clients/index', 'files')})"
        if name.endswith("/README.md") and folder in READMES:
            home = "command-line" if anchor == "command-line" else READMES[folder]
            return f"[{found['words']}]({link(page, home, '' if anchor == home else anchor)})"
        document = os.path.normpath(name).removeprefix("docs/") if name else source
        if document not in homes or found["mark"]:
            return found["words"]
        known = locate()[document]
        if anchor and anchor not in known:
            raise LookupError(
                f"{document}#{anchor} is on no page of the site: add it to scripts/site/plan.py"
            )
        return f"[{found['words']}]({link(page, known[anchor] if anchor else homes[document], anchor)})"

    return link_codes(_LINK.sub(lead, text), page) if source == INTEGRATING else _LINK.sub(lead, text)


def link_readme(text: str, page: str, folder: str) -> str:
    """Text of a client's README, whose own anchors are those of the client's page, as a page has it."""
    text = re.sub(r"\]\((?:\.\./)+docs/", "](", text)
    if page != READMES[folder]:
        text = text.replace("](#", f"]({link(page, READMES[folder])}#")
    return link_codes(rewrite(text, page, f"{folder}/README.md"), page)


_CODE = re.compile(
    r"```.*?```|`[^`\n]*`|\[[^\]]*\]\([^)]*\)|^#.*?$|<[^>]*>|(?P<code>\b[45]\d{4}\b)",
    re.DOTALL | re.MULTILINE,
)


def link_codes(text: str, page: str) -> str:
    """The text with each code as a link to its page, unless it is code, a link or a heading already."""

    def lead(found: re.Match[str]) -> str:
        known = found["code"] and int(found["code"]) in CODES
        return f"[{found['code']}]({link(page, 'codes/' + found['code'])})" if known else found[0]

    return _CODE.sub(lead, text)
