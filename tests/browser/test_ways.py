"""Ways through the console in a real browser: "back" after a batch, what is chosen or typed outlives a change
of language and the end of a session, cards on a phone.
"""

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, NARROW, PHONE, CheckAxe, Visits
from tests.browser.looks import changing, each_language, require_looks, show
from tests.browser.test_console import open_signed_in, people
from tests.console.conftest import ConsoleUser, People
from tests.console.test_withdrawals import Till
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.console.session_cookie import COOKIE

__all__ = ["people"]

CLOCK_MS = 1_790_000_000_000
QUEUE = "/console/withdrawals"
IDLE_MS = 31 * MINUTE_MS
LONG_AMOUNTS = ("99999999.99", "60.02")


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    """A merchant whose orders above 50 USDT wait for approval."""
    shop = platform.open_merchant(name="Harbour Tea", approval_limit="50", withdraw_fee_min="1")
    for _ in range(4):
        shop.fund("USDT", "9900000000")
    return Till(platform, shop)


def choose(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=f"Choose order {name}").check()


def give_session(people: People, person: ConsoleUser, page: Page) -> None:
    """Sign in again in the same browser."""
    people.give_session(person)
    url = f"http://127.0.0.1:{person.platform.port}/console"
    page.context.add_cookies(
        [{"name": COOKIE, "value": person.http.cookies[COOKIE], "url": url, "httpOnly": True}]
    )


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_back_after_a_batch_asks_again_and_decides_nothing(
    visits: Visits, people: People, till: Till, script: bool
) -> None:
    names = (f"BACK-1-{script:d}", f"BACK-2-{script:d}")
    orders = [till.order("60", mcOrderId=name) for name in names]
    person = people.signed_in("operator")
    page = visits.open(DESKTOP, url=f"http://127.0.0.1:{person.platform.port}", java_script_enabled=script)
    give_session(people, person, page)
    page.goto(f"{QUEUE}?merchant={till.shop.merchant_id}")
    choose(page, *names)
    page.get_by_role("button", name="Approve orders").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 2 orders?")
    page.get_by_role("button", name="Approve orders").click()
    expect(page.get_by_text("2 of 2 went through")).to_be_visible()
    page.reload()
    expect(page.get_by_text("2 of 2 went through")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 2 orders?")
    page.go_forward()
    expect(page.get_by_text("2 of 2 went through")).to_be_visible()
    assert [till.approvers(one)[1] for one in orders] == [f"operator:{person.name}"] * 2


def test_the_selection_and_its_total_outlive_a_change_of_language(
    visits: Visits, people: People, till: Till
) -> None:
    for number, amount in enumerate(LONG_AMOUNTS):
        till.order(amount, mcOrderId=f"LANG-{number}")
    till.order("70", mcOrderId="LANG-OTHER")
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto(f"{QUEUE}?merchant={till.shop.merchant_id}")
    choose(page, "LANG-0", "LANG-1")
    total = page.locator("[data-total]")
    expect(total).to_have_text("100,000,060.01USDT")
    page.locator("summary[aria-label='Language and theme']").click()
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("[data-one]:checked")).to_have_count(2)
    expect(total).to_have_text("100,000,060.01USDT")
    page.reload()
    expect(page.locator("[data-total]")).to_be_hidden()


def test_what_is_typed_outlives_a_change_of_language_but_no_password(
    visits: Visits, people: People, till: Till
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto(f"/console/merchants/{till.shop.merchant_id}/settings")
    page.get_by_label("Requests a second").fill("77")
    page.locator("summary[aria-label='Language and theme']").click()
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("[name=rate-limit]")).to_have_value("77")
    page.goto("/console/account")
    page.locator("[name=old]").fill("seven grey herons wade")
    page.locator("main summary, header summary").first.click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("[name=old]")).to_have_value("")
    assert "herons" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_a_session_that_ends_while_one_edits_says_so_and_the_form_comes_back(
    visits: Visits, people: People, till: Till, clock: Clock, check_axe: CheckAxe
) -> None:
    person = people.signed_in("operator")
    page = open_signed_in(visits, person)
    url = f"/console/merchants/{till.shop.merchant_id}/settings"
    page.goto(url)
    page.get_by_label("Requests a second").fill("4321")
    page.get_by_label("Require a PIN").check()
    clock.advance(IDLE_MS)
    # The next look of the banner finds out. It leaves the page as it is.
    page.evaluate("htmx.trigger('#banner', 'seen')")
    expect(page.get_by_role("alert").filter(has_text="Your session has ended")).to_be_visible()
    expect(page.get_by_label("Requests a second")).to_have_value("4321")
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("What you typed is kept")).to_be_visible()
    check_axe(page)
    give_session(people, person, page)
    page.goto(page.url)
    expect(page.get_by_text("Here is what you typed")).to_be_visible()
    expect(page.get_by_label("Requests a second")).to_have_value("4321")
    expect(page.get_by_label("Require a PIN")).to_be_checked()
    expect(page.get_by_role("button", name="Send it now")).to_have_count(0)
    check_axe(page)
    page.get_by_role("button", name="Save settings").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    page.goto(url)
    expect(page.get_by_label("Requests a second")).to_have_value("4321")


def test_a_selection_comes_back_after_signing_in(
    visits: Visits, people: People, till: Till, clock: Clock
) -> None:
    till.order("60", mcOrderId="LATE-1")
    person = people.signed_in("operator")
    page = open_signed_in(visits, person)
    page.goto(f"{QUEUE}?merchant={till.shop.merchant_id}")
    choose(page, "LATE-1")
    clock.advance(IDLE_MS)
    page.get_by_role("button", name="Approve orders").click()
    expect(page.get_by_text("What you typed is kept")).to_be_visible()
    give_session(people, person, page)
    page.goto(page.url)
    expect(page.get_by_role("checkbox", name="Choose order LATE-1")).to_be_checked()
    expect(page.get_by_text("1 chosen")).to_be_visible()


def test_without_a_script_the_form_is_listed_and_sent_from_the_list(
    visits: Visits, people: People, till: Till, clock: Clock
) -> None:
    person = people.signed_in("operator")
    page = visits.open(DESKTOP, url=f"http://127.0.0.1:{person.platform.port}", java_script_enabled=False)
    give_session(people, person, page)
    page.goto(f"/console/merchants/{till.shop.merchant_id}/settings")
    page.get_by_label("Requests a second").fill("1234")
    clock.advance(IDLE_MS)
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("What you typed is kept")).to_be_visible()
    give_session(people, person, page)
    page.goto(page.url)
    page.get_by_text("What you typed", exact=True).click()
    expect(page.locator(".kept-form dl")).to_contain_text("1234")
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_label("Requests a second")).to_have_value("1234")


LEAVES = """() => {
  // A wide table of figures scrolls in its own box.
  const hidden = ".visually-hidden, thead, dialog:not([open]), [hidden], details:not([open]),"
    + " .table:not(.table-cards)";
  const found = [];
  for (const card of document.querySelectorAll("main .card, main .stat, .choice-bar")) {
    const box = card.getBoundingClientRect();
    const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode;
      const isHidden = text.parentElement.closest(hidden);
      if (!text.textContent.trim() || isHidden) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      for (const rect of range.getClientRects()) {
        const leaves = rect.left < box.left - 1 || rect.right > box.right + 1;
        if (rect.width > 1 && leaves) found.push(text.textContent.trim());
      }
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
}"""


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_no_number_leaves_its_card_on_the_narrowest_phone(
    visits: Visits, people: People, till: Till, language: str
) -> None:
    order = till.order("89999999.12", mcOrderId="W" * 19 + language[0])
    player = "W" * 19 + language[0]
    till.shop.user(player)
    page = open_signed_in(visits, people.signed_in("operator"), NARROW, language=language)
    merchant = till.shop.merchant_id
    for path in (
        f"{QUEUE}?merchant={merchant}",
        f"{QUEUE}/confirm?what=approve&order={order}",
        f"{QUEUE}/all?merchant={merchant}",
        f"{QUEUE}/{order}",
        "/console",
        "/console/payouts",
        "/console/merchants",
        f"/console/merchants/{merchant}",
        f"/console/books/{merchant}",
        f"/console/books/{merchant}/accounts/1",
        "/console/sub-users",
        "/console/search?q=" + "W" * 19 + language[0],
        "/console/audit",
    ):
        page.goto(path)
        if path.startswith(f"{QUEUE}?"):
            for one in page.locator("[data-one]").all():
                one.check()
        assert page.evaluate(LEAVES) == [], path


@each_language
def test_an_approval_card_begins_with_its_amount(
    visits: Visits, people: People, till: Till, language: str
) -> None:
    name = f"CARD-{language}"
    till.order("1234567.5", mcOrderId=name)
    page = open_signed_in(visits, people.signed_in("operator"), language=language)
    page.goto(f"{QUEUE}?merchant={till.shop.merchant_id}")
    row = page.locator("tr", has_text=name)
    row.locator("[data-one]").check()
    require_looks(page, NARROW, colours=language == "en")
    for screen in (PHONE, NARROW):
        with changing(page) as device:
            show(page, device, screen, "light")
            amount, order = row.locator(".amount-cell").bounding_box(), row.locator("th").bounding_box()
            assert amount is not None
            assert order is not None
            assert amount["y"] < order["y"]
            height = row.bounding_box()["height"]  # type: ignore[index]  # it is visible
            assert height < 320, "the card is compact"
