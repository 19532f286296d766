"""Cuts a Markdown document at its headings, and finds for each heading the page that has it. Pure.

Rules: anchors are those of GitHub, which `toc` gives the same headings on the site. What looks like a heading
in a code block is none.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADING = re.compile(r"^(#+) (.+)$")
_FENCE = re.compile(r"^\s*```")


class Section(NamedTuple):
    """A heading, and the lines up to the next one."""

    level: int
    title: str
    anchor: str
    body: str

    def write(self, shift: int = 0) -> str:
        """The section as Markdown, its heading `shift` levels higher."""
        return f"{'#' * (self.level - shift)} {self.title}\n{self.body}"


def anchor_of(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-")


def split(text: str) -> list[Section]:
    """All sections of a document, in order. Lines before its first heading are dropped."""
    sections: list[Section] = []
    lines: list[str] = []
    for level, line in _read_lines(text):
        if not level:
            lines.append(line)
            continue
        _close(sections, lines)
        title = line[level + 1 :]
        sections.append(Section(level, title, anchor_of(title), ""))
        lines = []
    _close(sections, lines)
    return sections


def _read_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its level as a heading, 0 for any other line."""
    in_code = False
    for line in text.splitlines():
        in_code ^= bool(_FENCE.match(line))
        found = None if in_code else _HEADING.match(line)
        yield (len(found[1]) if found else 0), line


def _close(sections: list[Section], lines: list[str]) -> None:
    if sections:
        sections[-1] = sections[-1]._replace(body="\n".join(lines) + "\n")


def find(sections: list[Section], anchor: str, *, own: bool = False) -> list[Section]:
    """The section with an anchor and all below it; with `own` it alone. Raises LookupError."""
    found = [place for place, section in enumerate(sections) if section.anchor == anchor]
    if not found:
        raise LookupError(f"no heading has the anchor {anchor}")
    first = found[0]
    top = sections[first].level
    end = first + 1
    while not own and end < len(sections) and sections[end].level > top:
        end += 1
    return sections[first:end]


def slugify(title: str, separator: str) -> str:
    """The anchor of a heading on the site, as `toc` asks for it."""
    return anchor_of(re.sub(r"<[^>]+>", "", title))
