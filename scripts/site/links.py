"""Checks every link of a built site, anchors included, and that nothing would be fetched from another host.
Pure reading.

Rules: a link to another host is for people, so it is only checked to be https. Whatever a browser loads by
itself must be a file of the site.
"""

from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

OF_THE_SERVICE: Final = ("/docs/api", "/openapi.json")
"""Paths beside the site, which the service itself answers."""
_LOADED: Final = {
    "img": ("src",),
    "script": ("src",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "use": ("href",),
}


class Found(NamedTuple):
    """A link of a page. `loaded`: a browser follows it by itself."""

    target: str
    loaded: bool


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[Found] = []
        self.inline: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, and its anchor."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.inline += [name for name in values if name.startswith("on")]
        self.inline += [f"style of <{tag}>"] if "style" in values else []
        if tag == "a" and "href" in values:
            self.links.append(Found(values["href"], False))
        if tag == "link" and "href" in values:
            loaded = values.get("rel", "") in ("stylesheet", "icon", "preload")
            self.links.append(Found(values["href"], loaded))
        self.links += [Found(values[name], True) for name in _LOADED.get(tag, ()) if name in values]
        self._script = tag == "script" and "src" not in values and values.get("type") != "application/json"
        self.inline += [f"<{tag}>"] if tag == "style" or self._script else []


def find_dead_links(site: Path) -> list[str]:
    """What is wrong with the links of a site, one line each."""
    pages = {path.relative_to(site).as_posix(): _read(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for name, page in pages.items():
        wrong += [f"{name}: {what} inside of the page; the policy forbids it" for what in page.inline]
        for link in page.links:
            if (problem := _judge(site, pages, name, link)) is not None:
                wrong.append(f"{name}: {link.target}: {problem}")
    return wrong


def _read(path: Path) -> _Reader:
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def _judge(site: Path, pages: dict[str, _Reader], name: str, link: Found) -> str | None:
    """Why a link is wrong, or None."""
    parts = urlsplit(link.target)
    if parts.scheme or parts.netloc:
        if link.loaded and parts.scheme != "data":
            return "it is loaded from another host"
        return None if parts.scheme in ("https", "mailto", "data") else "not https"
    if parts.path.startswith("/"):
        return None if parts.path.startswith(OF_THE_SERVICE) else "an absolute path holds at one place only"
    path = _resolve(name, unquote(parts.path))
    if path is None or not (site / path).is_file():
        return "there is no such page"
    if parts.fragment and path in pages and unquote(parts.fragment) not in pages[path].anchors:
        return "the page has no such anchor"
    return None


def _resolve(name: str, path: str) -> str | None:
    """The file that a relative path of a page means. None above the site."""
    if not path:
        return name
    folder = name.rpartition("/")[0]
    joined = normpath(f"{folder}/{path}" if folder else path)
    if joined.startswith(".."):
        return None
    is_folder = path.endswith(("/", "..", "."))
    return normpath(f"{joined}/index.html") if is_folder else joined
