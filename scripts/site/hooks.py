"""What MkDocs does with each page besides: no script stays inside of a page, so that the policy can forbid
them, and those who hear a page can tell its parts apart.

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
_NEIGHBOURS = re.compile(r'<link rel="(?:next|prev)"[^>]*>')
_CONTENTS = re.compile(r'(<nav class="md-nav md-nav--secondary" aria-label=)"([^"]*)"')
_NAVIGATION = re.compile(r"<nav\b[^>]*>|</nav>")
_INNER: Final = '<nav class="md-nav" '
_LABEL = re.compile(r' aria-(?:label|labelledby|expanded)="[^"]*"')
_SEARCH: Final = {"en": "Search", "zh": "搜索"}
_MENU: Final = {"en": "menu", "zh": "菜单"}
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
    return name_parts(_BLOCK.sub(r'\1<code tabindex="0">', text), config.extra["language"])


def name_parts(text: str, language: str) -> str:
    """Tell the parts of a page apart for those who hear it, and leave out what the policy forbids. Pure."""
    # Firefox fetches the next page before it is asked for, which the policy refuses.
    text = _NEIGHBOURS.sub("", text)
    text = text.replace('role="dialog"', f'role="dialog" aria-label="{_SEARCH[language]}"')
    # The contents are there twice: in the menu, and beside the text.
    if len(_CONTENTS.findall(text)) > 1:
        text = _CONTENTS.sub(rf'\1"\2 ({_MENU[language]})"', text, count=1)
    return _flatten_navigation(text)


def _flatten_navigation(text: str) -> str:
    """Lists within a navigation are no navigations of their own."""
    inner: list[bool] = []

    def rename(tag: re.Match[str]) -> str:
        if tag[0] == "</nav>":
            return "</div>" if inner.pop() else "</nav>"
        inner.append(tag[0].startswith(_INNER))
        return _LABEL.sub("", tag[0].replace("<nav", "<div", 1)) if inner[-1] else tag[0]

    return _NAVIGATION.sub(rename, text)
