"""Fills the comments in written pages, such as `<!-- section: ANCHOR -->` and `<!-- block: NAME -->`.

Rules: each stands on its own line. What it names must exist, else the build fails with what to do.
"""

import re
from collections.abc import Callable
from typing import Final

from scripts.site import drawings, quickstart, tables
from scripts.site.links_between import SECTION, rewrite
from scripts.site.plan import INTEGRATING, Language, Page
from scripts.site.reference import find, split
from scripts.site.texts import WRITTEN, read, read_block, read_code

_DIRECTIVE = re.compile(r"^( *)<!-- (block|code|file|drawing|table): ([^>]+?) -->$", re.MULTILINE)
_IN_CHINESE: Final = (
    (r"^Request body:$", "请求体："),
    (r"^String to sign:$", "待签名字符串："),
    (r"^Answer:$", "响应："),
    (r"^Headers:$", "请求头："),
    (r"^Body, one line on the wire:$", "请求体（传输时只有一行）："),
    (r"^Secret: (`\w+`)\. The string to sign has (\d+) lines:$", r"密钥 \1，待签名字符串共 \2 行："),
    (r"^The legacy method signs, .*$", "旧方法对同一请求签名的是下面这段文本，末尾再接 `&key=` 和密钥："),
    (r"^(?:and its )?`sign` is (`\w+`)\.$", r"`sign` 为 \1。"),
    (r"^Its `sign` has (\d+) characters: (`\w+`)\.$", r"其 `sign` 有 \1 个字符：\2。"),
    (r"^The secret is (`\w+`), the callback secret (`\w+`)\.$", r"密钥为 \1，回调密钥为 \2。"),
)
"""The words between the generated examples."""


def compose(page: Page, language: Language) -> str:
    """The Markdown of a page. Raises LookupError if nothing is written for it."""
    client = quickstart.find_client(page.path)
    if client is not None:
        return quickstart.write_page(client, language)
    if language == "en" and (shown := quickstart.find_shown(page.path)) is not None:
        return quickstart.write_client(shown)
    written = WRITTEN / language / f"{page.path}.md"
    if written.exists():
        return fill(written.read_text(encoding="utf-8"), page.path, language)
    if language == "en" and page.sections:
        return "".join(_cut(page.path, page.source, anchor, top=1) for anchor in page.sections)
    raise LookupError(
        f"write docs/site/{language}/{page.path}.md, or take the page out of scripts/site/plan.py"
    )


def fill(text: str, path: str, language: Language) -> str:
    """A written page with everything that its comments name."""

    def cut(found: re.Match[str]) -> str:
        return _cut(path, INTEGRATING, found[1], top=2, own=bool(found[2]))

    makers: dict[str, Callable[[str], str]] = {
        "block": lambda name: _translate(read_block(name), language),
        "code": read_code,
        "file": lambda words: _show_file(*words.split()),
        "drawing": lambda name: drawings.draw(name, language),
        "table": lambda name: tables.make(name, language, path),
    }

    def make(found: re.Match[str]) -> str:
        made = makers[found[2]](found[3])
        return re.sub(r"(?m)^(?=.)", found[1], made)

    return _DIRECTIVE.sub(make, SECTION.sub(cut, text))


def _cut(path: str, source: str, anchor: str, *, top: int, own: bool = False) -> str:
    sections = split(read(f"docs/{source}"))
    found = sections if anchor == "*" else find(sections, anchor, own=own)
    shift = found[0].level - top
    text = "\n".join(section.write(shift).rstrip("\n") + "\n" for section in found)
    return rewrite(re.sub(r"^<!-- (?:begin|end|code): .*-->\n", "", text, flags=re.MULTILINE), path, source)


def _translate(text: str, language: Language) -> str:
    if language == "zh":
        for english, chinese in _IN_CHINESE:
            text = re.sub(english, chinese, text, flags=re.MULTILINE)
    return text


def _show_file(name: str, language: str) -> str:
    """A file as a code block, or its part `NAME#PART` between `docs:begin PART` and `docs:end PART`."""
    path, _, part = name.partition("#")
    text = read(path)
    if part:
        found = re.search(
            rf"^[^\n]*docs:begin {part}\b[^\n]*\n(.*?)^[^\n]*docs:end {part}\b", text, re.S | re.M
        )
        if found is None:
            raise LookupError(f"{path} has no part {part}")
        text = found[1]
    return f"```{language}\n{text.rstrip()}\n```"
