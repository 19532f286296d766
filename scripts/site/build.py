"""Builds the site: writes the Markdown of every page, then lets MkDocs make HTML of it, in both languages.

Rules: nothing is fetched. The same sources give the same bytes. A warning of MkDocs, such as a dead link,
fails the build.
"""

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import jieba  # type: ignore[import-untyped]
from mkdocs.commands.build import build as run_mkdocs
from mkdocs.config import load_config
from scripts.site import codes, directives, feed, packages
from scripts.site.links_between import HOMES, IN_BOTH, link, locate, rewrite
from scripts.site.plan import (
    CODES,
    INTEGRATING,
    INTEGRATING_PAGE,
    LANGUAGES,
    PARTS,
    REFERENCE,
    Language,
    Page,
    list_pages,
)
from scripts.site.reference import split
from scripts.site.texts import ROOT, WRITTEN, read

SOURCES: Final = ROOT / "build" / "site-sources"
TARGET: Final = ROOT / "build" / "site"
UNUSED: Final = ("*.map", "404.html", "sitemap.xml.gz", "assets/javascripts/lunr/tinyseg.js")
"""What MkDocs makes and no page asks for."""
LUNR: Final = ("lunr.stemmer.support.min.js", "lunr.zh.min.js", "lunr.multi.min.js")
_API_TITLES: Final = {"en": "API explorer", "zh": "API 调试页"}
_SITE_NAMES: Final = {"en": "merchant-wallet", "zh": "merchant-wallet"}
_DESCRIPTIONS: Final = {
    "en": "How a merchant's system calls the wallet service: operations, signatures, callbacks and codes.",
    "zh": "商户系统如何对接钱包服务：接口、签名、回调与返回码。",
}
_INTROS: Final = {
    "en": "What integrators and operators notice, newest first. Follow it as a feed: "
    "[changelog.atom](../changelog.atom). What may change and what may not is in [versions](versioning.md).",
    "zh": "对接方和运营方能感知的变化，最新的在前（内容为英文）。可以订阅："
    "[changelog.atom](../changelog.atom)。"
    "哪些会变、哪些不变，见[版本与弃用](versioning.md)。",
}
API_PATH: Final = "/docs/api"


def build(target: Path = TARGET, sources: Path = SOURCES) -> None:
    """Build both languages into `target`: English at its root, Chinese in `zh/`."""
    shutil.rmtree(sources, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    sources.mkdir(parents=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    jieba.setLogLevel(logging.WARNING)
    jieba.dt.tmp_dir = str(sources.parent)
    for language in LANGUAGES:
        write_sources(language, sources / language)
        _run(language, sources / language, target if language == "en" else target / language)


def _now() -> datetime:
    """The time of the build: that of the commit, in a release."""
    return datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)


def write_sources(language: Language, folder: Path) -> None:
    """Write the Markdown of every page of a language."""
    for page in list_pages(language):
        maker = _MADE.get(page.path)
        text = directives.compose(page, language) if maker is None else maker(language)
        _write(folder / f"{page.path}.md", text)
    for each in codes.list_codes():
        _write(folder / "codes" / f"{each.code}.md", codes.write_page(each, language))
    shutil.copytree(WRITTEN / "assets", folder / "assets")
    if language == "en":
        for name, data in packages.packages().items():
            (folder / packages.FOLDER / name).write_bytes(data)
    releases = feed.read_releases(read("CHANGELOG.md"), _now())
    _write(folder / feed.FEED, feed.write_feed(releases))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_changelog(language: Language) -> str:
    releases = feed.read_releases(read("CHANGELOG.md"), _now())
    title = "更新日志" if language == "zh" else "Changelog"
    text = feed.write_page(releases, title, "")
    head, _, releases_text = text.partition("\n")
    homes = HOMES if language == "en" else IN_BOTH
    body = rewrite(releases_text, "promises/changelog", "CHANGELOG.md", homes)
    return f"{head}\n\n{_INTROS[language]}\n{body}"


def _write_integrating(language: Language) -> str:
    """The page at the old document's name: each of its headings, with the page where it is now."""
    title = "参考文档的各个部分" if language == "zh" else "The reference, part by part"
    intro = {
        "en": "The guide for integrators is these pages now. Each heading of `docs/integrating.md` "
        "leads to its place.",
        "zh": "对接指南现在分为多个页面。`docs/integrating.md` 的每个标题都指向对应的位置。",
    }[language]
    lines = [f"# {title}", "", intro, ""]
    places = locate()[INTEGRATING]
    for section in split(read(f"docs/{INTEGRATING}"))[1:]:
        if section.anchor not in places:
            raise LookupError(
                f"no page has '{section.title}' of docs/integrating.md: see scripts/site/plan.py"
            )
        target = places[section.anchor]
        anchor = section.anchor if language == "en" else ""
        lines += [f"## {section.title}", "", f"[{target}]({link('integrating', target, anchor)})", ""]
    return "\n".join(lines)


_MADE: Final[dict[str, Callable[[Language], str]]] = {
    "promises/changelog": _write_changelog,
    INTEGRATING_PAGE.path: _write_integrating,
}


def make_navigation(language: Language) -> list[dict[str, Any]]:
    """The navigation as MkDocs takes it."""
    navigation: list[dict[str, Any]] = []
    for part in PARTS:
        pages = _list_entries(part.list_pages(language), language)
        if part is REFERENCE:
            pages.append({_API_TITLES[language]: API_PATH})
        if part is CODES:
            pages += [{str(each.code): f"codes/{each.code}.md"} for each in codes.list_codes()]
        navigation.append({part.title(language): pages})
    return navigation


def _list_entries(pages: Sequence[Page], language: Language) -> list[Any]:
    """The entries of a part. Pages of a folder with an index of its own, within the part, stand below it."""
    entries: list[Any] = []
    folders: dict[str, list[Any]] = {}
    for number, page in enumerate(pages):
        folder, _, name = page.path.rpartition("/")
        if name == "index" and number:
            folders[folder] = [f"{page.path}.md"]
            entries.append({page.title(language): folders[folder]})
        else:
            folders.get(folder, entries).append({page.title(language): f"{page.path}.md"})
    return entries


def _run(language: Language, sources: Path, target: Path) -> None:
    # The words in a name are found too: `getWithdrawFee` by "withdraw fee".
    names = r"|\.(?!\d)|(?!\b)(?=[A-Z][a-z])"
    search: dict[str, Any] = {"lang": "en", "separator": r"[\s\u200b\-,:!=\[\]()\"`/]+" + names}
    if language == "zh":
        search = {
            "lang": ["en", "zh"],
            "separator": r"[\s\u200b\u3000-\u303f\uff00-\uffef\-,:!=\[\]()\"`/]+" + names,
        }
    config = load_config(
        str(WRITTEN / "mkdocs.yml"),
        docs_dir=str(sources),
        site_dir=str(target),
        site_name=_SITE_NAMES[language],
        site_description=_DESCRIPTIONS[language],
        nav=make_navigation(language),
        plugins=[{"search": search}],
        strict=True,
    )
    config.theme["language"] = language
    config.extra["language"] = language
    run_mkdocs(config)
    _drop_unused(target)


def _drop_unused(target: Path) -> None:
    for pattern in UNUSED:
        for path in target.rglob(pattern) if "/" not in pattern else target.glob(pattern):
            path.unlink()
    for path in (target / "assets/javascripts/lunr/min").glob("*.js"):
        if path.name not in LUNR:
            path.unlink()
    (target / "assets/javascripts/lunr/wordcut.js").unlink(missing_ok=True)
