"""Reads the documents and the parts of them that pages include: generated blocks, printed code, files."""

import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
WRITTEN: Final = DOCS / "site"


@cache
def read(name: str) -> str:
    """A file of the repository, named from its folder."""
    return (ROOT / name).read_text(encoding="utf-8")


def read_block(name: str) -> str:
    """A generated block of the reference. Raises LookupError."""
    found = re.search(
        rf"<!-- begin: {re.escape(name)} -->\n(.*?)\n<!-- end: {re.escape(name)} -->",
        read("docs/integrating.md"),
        re.DOTALL,
    )
    if found is None:
        raise LookupError(f"docs/integrating.md has no block {name}")
    return found[1]


def read_code(name: str) -> str:
    """A printed program of the reference, with its fence. Raises LookupError."""
    pattern = rf"<!-- code: {re.escape(name)} -->\n(```\w+\n.*?\n```)\n"
    found = re.search(pattern, read("docs/integrating.md"), re.DOTALL)
    if found is None:
        raise LookupError(f"docs/integrating.md has no code {name}")
    return found[1]
