"""Walks: what people do on an occasion, told in a document with pictures and done in a browser.

Rules:
- A document in docs/walks has a step under each heading of the form `## 1. Title`. The test does the same
  steps in the same order, so a document can't tell what the pages no longer do.
- People do it on their phones. At the end of each step its page is looked at on a phone and on a desktop.
- A step's pictures are `walk-NAME-NO-SCREEN`, taken at its end if WALLET_DOCS_IMAGES=1 is set.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page
from tests.browser.axe import find_barriers
from tests.browser.conftest import DESKTOP, PHONE, ROOT, Shot
from tests.browser.looks import changing, show

FOLDER: Final = ROOT / "docs/walks"
SCREENS: Final = (DESKTOP, PHONE)


def read_steps(name: str) -> list[str]:
    """The titles of a document's steps."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\d+)\. (.+)$", text, re.M)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1)), name
    return [title for _, title in found]


def list_pictures(name: str) -> list[Path]:
    """The pictures that a document shows."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return [(FOLDER / path).resolve() for path in re.findall(r'src="([^"]+)"', text)]


class Walk:
    """One walk on a phone."""

    def __init__(self, name: str, shot: Shot) -> None:
        self._name, self._shot = name, shot
        self._left = read_steps(name)
        self._done = 0

    @contextmanager
    def step(self, title: str, page: Page) -> Iterator[None]:
        """The next step. At its end the page has no barrier on either screen, and its pictures are taken."""
        assert self._left[:1] == [title], f"the document's next step is {self._left[:1]}, not {title!r}"
        yield
        self._left.pop(0)
        self._done += 1
        with changing(page) as device:
            for screen in SCREENS:
                show(page, device, screen, "light")
                barriers = find_barriers(page)
                assert not barriers, f"{title} ({screen.name}): " + "\n".join(barriers)
                self._shot(page, f"walk-{self._name}-{self._done}-{screen.name}")

    def end(self) -> None:
        """Every step of the document was done."""
        assert not self._left, f"not done: {self._left}"
