"""`make site` runs this: builds both languages, checks every link, packs one file.

With a folder it builds there, into `site` and `documentation.zip`, and leaves the package as it is.
"""

import logging
import sys
import time
from pathlib import Path

from scripts.site.build import SOURCES, TARGET, build
from scripts.site.links import find_dead_links
from scripts.site.pack import PACKED, pack


def main(folder: Path | None = None) -> None:
    """Build the site and say what came of it."""
    began_s = time.monotonic()
    logging.basicConfig(level=logging.WARNING, format="make site: %(message)s")
    target, sources, packed = TARGET, SOURCES, PACKED
    if folder is not None:
        target, sources, packed = folder / "site", folder / "sources", folder / PACKED.name
    build(target, sources)
    dead = find_dead_links(target)
    if dead:
        sys.exit("make site: dead links:\n" + "\n".join(dead))
    pages = len(list(target.rglob("*.html")))
    size = pack(target, packed)
    print(
        f"{pages} pages in {time.monotonic() - began_s:.0f} s: {target}; packed: {size:,} bytes in {packed}"
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
