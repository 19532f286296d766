"""Packs the built site into the one file that the service serves, `merchant_wallet/web/documentation.zip`.

Rules: the same site gives the same bytes: names are sorted, times and rights are fixed. Texts are deflated,
which is what a browser gets as they are.
"""

import zipfile
from pathlib import Path
from typing import Final

from scripts.site.texts import ROOT

PACKED: Final = ROOT / "src" / "merchant_wallet" / "web" / "documentation.zip"
_NEVER: Final = (1980, 1, 1, 0, 0, 0)


def pack(site: Path, target: Path) -> int:
    """Pack a built site. Returns the size in bytes."""
    part = target.with_suffix(".part")
    with zipfile.ZipFile(part, "w") as packed:
        for path in sorted(path for path in site.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(site).as_posix(), _NEVER)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, path.read_bytes(), compresslevel=9)
    part.replace(target)
    return target.stat().st_size
