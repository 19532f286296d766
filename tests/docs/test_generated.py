"""The generated parts of the pages match the present code."""

import re

from scripts.documents.pages import PAGES, list_blocks, renew

from merchant_wallet.base.codes import CODES
from merchant_wallet.base.config import describe_settings
from merchant_wallet.console.request import Page
from merchant_wallet.console.routes import list_pages
from merchant_wallet.merchants.records import OPERATIONS
from merchant_wallet.merchants.settings import SETTINGS

STALE = "the generated parts are out of date: run `make docs`"


def test_every_generated_part_is_what_a_run_gives_now(blocks: dict[str, str]) -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert renew(text, blocks) == text, f"{page.name}: {STALE}"


def test_every_generated_part_stands_in_a_page_once(blocks: dict[str, str]) -> None:
    placed = [name for page in PAGES for name in list_blocks(page.read_text(encoding="utf-8"))]
    assert sorted(placed) == sorted(blocks)


def test_no_marker_is_left_without_its_partner() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"<!-- (?:begin|end): ", text)) == 2 * len(list_blocks(text)), page.name


def test_every_operation_has_an_example(blocks: dict[str, str]) -> None:
    assert {name.removeprefix("example ") for name in blocks if name.startswith("example ")} == set(
        OPERATIONS
    )


def test_every_code_and_every_setting_has_its_row(blocks: dict[str, str]) -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", blocks["codes"], re.M)] == list(CODES)
    listed = re.findall(r"^\| `(WALLET_[A-Z0-9_]+)` \|", blocks["settings"], re.M)
    assert sorted(listed) == sorted(name for name, _, _ in describe_settings())
    assert re.findall(r"^\| `([a-z-]+)` \|", blocks["merchant settings"], re.M) == list(SETTINGS)


def test_the_table_of_roles_has_what_pages_ask_for_and_nothing_else(blocks: dict[str, str]) -> None:
    rights = [page.right for page in list_pages() if isinstance(page, Page)]
    asked = {right.value for right in rights if right is not None}
    rows = dict(re.findall(r"^\| ([a-z][a-z -]+) \| (.*) \|$", blocks["roles"], re.M))
    assert set(rows) == asked
    assert rows["read"] == "yes | yes | yes | its own book"
    assert rows["manage operators"] == "yes |  |  | "


def test_the_story_makes_the_published_vector(blocks: dict[str, str]) -> None:
    assert '"sign": "48a6def3592a734ec4b9ee728e0e781a"' in blocks["example createMerchantWithdrawOrder"]
    assert "E288E4BDC300EE1855AC79F4517AAEAF" in blocks["vector"]
