"""What MkDocs does with each page besides: no script stays inside of a page, so that the policy can forbid
them.

MkDocs loads this file by its path (`hooks` in `docs/site/mkdocs.yml`).
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "assets/inline"
_CHECKBOX: Final = '<input type="checkbox" disabled'
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Move the page's scripts into files that are named by their content, and name its check boxes."""
    depth = page.url.count("/")

    def move(found: re.Match[str]) -> str:
        name = f"{hashlib.sha256(found[1].encode()).hexdigest()[:12]}.js"
        path = Path(config.site_dir) / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[1], encoding="utf-8")
        return f'<script src="{"../" * depth}{FOLDER}/{name}"></script>'

    label = "待确认" if config.extra["language"] == "zh" else "to do"
    return _INLINE.sub(move, output).replace(_CHECKBOX, f'{_CHECKBOX} aria-label="{label}"')
