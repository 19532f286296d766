"""Pages with generated blocks: find the blocks between their markers and write them again.

A block is between `<!-- begin: NAME -->` and `<!-- end: NAME -->`, each on its own line.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
PAGES: Final = tuple(
    ROOT / "docs" / name
    for name in ("integrating.md", "operating.md", "settings.md", "ARCHITECTURE.md", "decisions/README.md")
)

_BLOCK: Final = re.compile(r"<!-- begin: (?P<name>[^>]+) -->\n.*?<!-- end: (?P=name) -->", re.DOTALL)


class BlockUnknown(LookupError):
    """A page names an unknown block. The text is its name."""


def list_blocks(text: str) -> list[str]:
    """The names of a page's blocks, in order."""
    return [found["name"] for found in _BLOCK.finditer(text)]


def renew(text: str, blocks: Mapping[str, str]) -> str:
    """The page with all its blocks written again. Raises BlockUnknown."""

    def write(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in blocks:
            raise BlockUnknown(name)
        return f"<!-- begin: {name} -->\n{blocks[name]}\n<!-- end: {name} -->"

    return _BLOCK.sub(write, text)
