"""The built site: every page in both languages, every link, and that the Chinese says what the English
says.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from scripts.site import drawings, quickstart
from scripts.site.codes import CHINESE_RETRIES, list_codes
from scripts.site.links import find_dead_links
from scripts.site.plan import INTEGRATING, Page, list_pages
from scripts.site.quickstart import CLIENTS, Client
from scripts.site.reference import anchor_of, split
from scripts.site.texts import read

from merchant_wallet.base.codes import CODES
from merchant_wallet.book.rules.withdrawals import LEGAL_STEPS

BOTH = [page for page in list_pages("zh") if not page.path.startswith("operating/")]
CODE_PAGES = [f"codes/{code}" for code in CODES]
# What a page names: fields, operations, headers in code, and numbers of codes.
NAMES = re.compile(r"<code>([A-Za-z][\w./-]*)</code>")
CODE = re.compile(r"\b(?:40\d{3}|42[29]\d{2}|50[03]00)\b")


class _Text(HTMLParser):
    """The words of an article outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in ("pre", "code")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in ("pre", "code")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.words.append(data)


def read_article(site: Path, path: str, language: str = "en") -> str:
    """The HTML of a page's article."""
    folder = site if language == "en" else site / language
    name = path.removesuffix("index").rstrip("/")
    text = (folder / name / "index.html").read_text(encoding="utf-8")
    return text.partition("<article")[2].partition("</article>")[0]


def read_words(article: str) -> str:
    parser = _Text()
    parser.feed(article)
    return " ".join(parser.words)


def test_every_page_of_the_integrators_part_is_in_both_languages(site: Path) -> None:
    english = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "zh" not in path.parts}
    chinese = {path.relative_to(site / "zh").as_posix() for path in (site / "zh").rglob("*.html")}
    alone = {name for name in english if name.startswith("operating/")} - {"operating/index.html"}
    assert english - alone == chinese
    assert len(chinese) > 60


def test_the_search_ranks_operators_pages_below_all_others(site: Path) -> None:
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    boosts: dict[bool, list[float]] = {True: [], False: []}
    for entry in entries:
        boosts[entry["location"].startswith("operating/")].append(entry.get("boost", 1))
    assert max(boosts[True]) < min(boosts[False])


def test_no_link_is_dead_and_nothing_comes_from_another_host(site: Path) -> None:
    assert find_dead_links(site) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone/">x</a>', "there is no such page"),
        ('<a href="#gone">x</a>', "the page has no such anchor"),
        ('<a href="there/#gone">x</a>', "the page has no such anchor"),
        ('<a href="http://example.com/">x</a>', "not https"),
        ('<a href="/elsewhere/">x</a>', "an absolute path holds at one place only"),
        ('<img src="https://example.com/a.png">', "it is loaded from another host"),
        ('<script src="https://example.com/a.js"></script>', "it is loaded from another host"),
        ('<link rel="stylesheet" href="https://example.com/a.css">', "it is loaded from another host"),
        ("<script>run()</script>", "inside of the page"),
        ('<p style="color:red">x</p>', "inside of the page"),
        ('<p onclick="run()">x</p>', "inside of the page"),
    ],
)
def test_the_link_checker_finds_each_kind_of_mistake(tmp_path: Path, body: str, problem: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/index.html").write_text('<p id="here">x</p><a href="../">back</a>')
    (tmp_path / "index.html").write_text(f'<a href="there/#here">good</a>{body}')
    [found] = find_dead_links(tmp_path)
    assert problem in found


def test_every_heading_of_the_reference_leads_somewhere(site: Path) -> None:
    page = read_article(site, "integrating")
    missing = [
        section.anchor
        for section in split(read(f"docs/{INTEGRATING}"))[1:]
        if f'id="{section.anchor}"' not in page
    ]
    assert missing == []


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page_that_says_what_to_do_in_both_languages(site: Path, code: int) -> None:
    for language, retry in (("en", CODES[code].retry), ("zh", CHINESE_RETRIES[CODES[code].retry])):
        article = read_article(site, f"codes/{code}", language)
        assert CODES[code].name in article
        assert retry in article
        assert 'id="what-to-do"' in article


def test_every_text_of_a_code_is_there() -> None:
    for text in list_codes():
        assert text.todo_en
        assert text.todo_zh
        assert text.meaning_zh
        assert len(text.causes_en) == len(text.causes_zh)
        assert bool(text.causes_en) is (text.code != 200)
        assert sorted(CODE.findall(text.todo_en)) == sorted(CODE.findall(text.todo_zh))


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.page)
def test_a_clients_chinese_page_has_its_errors_and_leads_to_the_whole(site: Path, client: Client) -> None:
    page = f"clients/{client.page}"
    english, chinese = (read_article(site, page, language) for language in ("en", "zh"))
    for name in ("RefusedError", "NoAnswerError", "UnsafeAnswerError", "BadCallbackError", "FakeWallet"):
        assert (name in english) is (name in chinese), name
    assert f'href="../../../{page}/"' in chinese
    assert english.count("<h2") >= chinese.count("<h2") >= 3


@pytest.mark.parametrize(
    "page",
    [page for page in BOTH if quickstart.find_shown(page.path) is None],
    ids=lambda page: page.path,
)
def test_the_chinese_page_names_what_the_english_page_names(site: Path, page: Page) -> None:
    path = page.path
    english, chinese = (read_article(site, path, language) for language in ("en", "zh"))
    codes = [set(CODE.findall(read_words(each))) for each in (english, chinese)]
    assert codes[0] == codes[1], "codes that one language alone names"
    if path in ("promises/changelog", "integrating", "reference/code"):
        return
    fields = [{name for name in NAMES.findall(each)} for each in (english, chinese)]
    assert fields[0] - fields[1] == set(), "names that only the English page has"
    blocks = [each.count("<pre>") for each in (english, chinese)]
    assert blocks[0] == blocks[1], "code blocks"


@pytest.mark.parametrize("path", [page.path for page in BOTH] + CODE_PAGES)
def test_no_english_sentence_is_left_on_a_chinese_page(site: Path, path: str) -> None:
    if path in ("promises/changelog", "integrating"):
        pytest.skip("the changelog is English, and so are the old headings")
    words = read_words(read_article(site, path, "zh")).replace("RateLimit header fields for HTTP", "")
    assert re.findall(r"(?:\b[A-Za-z']+\b[ ,]+){5,}", words) == []


def test_the_picture_of_an_orders_life_has_every_status_and_every_step() -> None:
    drawn = drawings.draw("order", "en")
    assert drawn.count('class="d-line') == len(LEGAL_STEPS)
    assert all(
        f">{status} · " in drawn for status in {each for step in LEGAL_STEPS for each in step} | {2, 4, 5, 6}
    )


def test_the_page_on_debugging_shows_each_flow_as_a_figure(site: Path) -> None:
    page = (site / "operating" / "debugging" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'id="drawing-(flow-\w+)"', page) == [
        "flow-transfer",
        "flow-withdrawal",
        "flow-deposit",
    ]
    assert "images/flow-" not in page


def test_anchors_are_those_of_the_document() -> None:
    assert anchor_of("Idempotency and retries") == "idempotency-and-retries"
    assert anchor_of("PHP (8 and newer)") == "php-8-and-newer"


def test_a_heading_in_code_is_none() -> None:
    assert [section.title for section in split("# A\n```\n# b\n```\n## C\n")] == ["A", "C"]
