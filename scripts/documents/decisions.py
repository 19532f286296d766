"""The decisions of `docs/decisions`: each page's number, title and status, and the index of all."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from scripts.documents.field_tables import show_table

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD: Final = re.compile(r"# (?P<number>\d{4}) (?P<title>[^\n]+)\n\nStatus: (?P<status>.+?)\n\n", re.DOTALL)
_STATE: Final = re.compile(r"accepted\.|(?:partly )?superseded by (?:(?:, | and )?\[\d{4}\]\([^)]+\))+[.:]")
_LINK: Final = re.compile(r"\[(\d{4})\]")


class StatusUnknown(ValueError):
    """A page does not begin with a title and a known status. The text is its name."""


class Decision(NamedTuple):
    """One page. `state` is the first sentence of its status, up to what it says in detail."""

    page: Path
    number: str
    title: str
    status: str
    state: str

    @property
    def successors(self) -> list[str]:
        """The numbers of the decisions that supersede it, or a part of it."""
        return _LINK.findall(self.state)

    @property
    def replaced(self) -> list[str]:
        """The numbers of the decisions that it says it replaces, or a part of which it replaces."""
        return [
            number
            for sentence in re.split(r"(?<=\.)\s", self.status)
            if sentence.startswith("Replaces")
            for number in _LINK.findall(sentence)
        ]


def list_pages() -> list[Path]:
    """The decisions' pages in the order of their numbers."""
    return sorted(FOLDER.glob("[0-9]*.md"))


def read_decision(page: Path) -> Decision:
    """A page's head. Raises StatusUnknown."""
    head = _HEAD.match(page.read_text(encoding="utf-8"))
    status = " ".join(head["status"].split()) if head else ""
    state = _STATE.match(status)
    if head is None or state is None:
        raise StatusUnknown(page.name)
    return Decision(page, head["number"], head["title"], status, state[0].rstrip(".:"))


def show_index() -> str:
    """The table of all decisions."""
    decisions = map(read_decision, list_pages())
    return show_table(
        ("No.", "Decision", "Status"),
        ((f"[{each.number}]({each.page.name})", each.title, each.state) for each in decisions),
    )
