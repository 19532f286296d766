"""What MkDocs does with each page besides: no script stays inside of a page, so that the policy can forbid
them.

MkDocs loads this file by its path (`hooks` in `docs/site/mkdocs.yml`).
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

OPERATORS_BOOST: Final = 0.2
FOLDER: Final = "assets/inline"
_CHECKBOX: Final = '<input type="checkbox" disabled'
_BLOCK = re.compile(r"(<pre[^>]*>(?:<span></span>)?(?:<a [^>]*></a>)?)<code>")
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rank the operators' pages below the integrators' ones in the search."""
    if page.file.src_uri.startswith("operating/"):
        page.meta.setdefault("search", {})["boost"] = OPERATORS_BOOST
    return markdown


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
    text = _INLINE.sub(move, output).replace(_CHECKBOX, f'{_CHECKBOX} aria-label="{label}"')
    # What scrolls sideways on a phone can be reached with the keyboard.
    text = text.replace("<table>", '<div class="table-scroll" tabindex="0"><table class="rows">')
    text = text.replace("</table>", "</table></div>")
    return _BLOCK.sub(r'\1<code tabindex="0">', text)
