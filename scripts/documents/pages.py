"""Pages with generated blocks: finding the blocks between their markers and writing them anew.

A block stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`, each on a line of its own.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
PAGES: Final = tuple(ROOT / "docs" / name for name in ("integrating.md", "operating.md", "ARCHITECTURE.md"))

_BLOCK: Final = re.compile(r"<!-- begin: (?P<name>[^>]+) -->\n.*?<!-- end: (?P=name) -->", re.DOTALL)


class BlockUnknown(LookupError):
    """A page names a block that nothing makes; the text has its name."""


def list_blocks(text: str) -> list[str]:
    """The names of a page's blocks, in order."""
    return [found["name"] for found in _BLOCK.finditer(text)]


def renew(text: str, blocks: Mapping[str, str]) -> str:
    """The page with each block as it is now. Raises BlockUnknown."""

    def write(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in blocks:
            raise BlockUnknown(name)
        return f"<!-- begin: {name} -->\n{blocks[name]}\n<!-- end: {name} -->"

    return _BLOCK.sub(write, text)
