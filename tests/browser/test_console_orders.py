"""Money in the console in a real browser: two operators approve, an order is paid and reported;
statements.
"""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Shot, Visits
from tests.browser.looks import each_language, require_looks
from tests.browser.test_console import enrol, open_signed_in, people
from tests.console.conftest import ConsoleUser, People
from tests.console.test_adjustments import propose
from tests.console.test_callbacks import make_event, try_once
from tests.console.test_deposits import arrive
from tests.console.test_reconciliation import COIN, keep
from tests.console.test_withdrawals import OTHER_ADDRESS, Till
from tests.journeys.conftest import Platform
from tests.journeys.sandbox import act

from merchant_wallet.console import inbox_cache
from merchant_wallet.custody.comparison import JudgedMovement, Movement

__all__ = ["people"]

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 3000, "reconcile_interval_s": 0}
QUEUE = "/console/withdrawals"


class AcceptingEndpoint(BaseHTTPRequestHandler):
    """A merchant's endpoint that accepts every callback."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"success")

    def log_message(self, format: str, *args: object) -> None:
        """No log lines in the tests' output."""


@pytest.fixture(scope="module")
def notify_url() -> Iterator[str]:
    """The URL of an endpoint that accepts callbacks."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), AcceptingEndpoint)
    thread = threading.Thread(target=server.serve_forever, name="endpoint")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/told"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    """See `open_till`."""
    return open_till(platform)


def open_till(platform: Platform) -> Till:
    """A merchant with two orders in the queue: one to a known address, one to a sub-user's wallet."""
    shop = platform.open_merchant(
        name="Harbour Tea & Coffee",
        approval_limit="50",
        second_approval_limit="20000",
        withdraw_fee_min="1",
        withdraw_fee_rate="0.002",
    )
    shop.fund("USDT", "184250.75")
    shop.fund("KFB", "9000")
    shop.user("player-7", "120")
    till = Till(platform, shop)
    till.pay(till.order("1200", mcOrderId="INV-2026-0817", address=OTHER_ADDRESS), "0x" + "ab" * 32)
    wallet = platform.rows("select evm_address from sub_user where merchant_id = %s", shop.merchant_id)[0][0]
    till.order("640.5", mcOrderId="INV-2026-0819", address=OTHER_ADDRESS)
    till.order("75", mcOrderId="INV-2026-0820", address="0x" + bytes(wallet).hex())
    other = platform.open_merchant(name="Quayside Books", approval_limit="50")
    other.fund("USDT", "5000")
    Till(platform, other).order("310", chain="TRC20", mcOrderId="QB-51")
    return till


def sign_in(visits: Visits, person: ConsoleUser) -> Page:
    """Sign in for the first time, by typing, up to the overview."""
    page = visits.open(DESKTOP, url=f"http://127.0.0.1:{person.platform.port}")
    enrol(page, person)
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    return page


def test_two_people_approve_a_large_withdrawal_and_watch_it_being_paid_and_told(
    visits: Visits, people: People, till: Till, notify_url: str, check_axe: CheckAxe, shot: Shot
) -> None:
    order = till.order("25000", mcOrderId="INV-2026-0818", notifyUrl=notify_url)
    ann = sign_in(visits, people.newcomer("operator", name="mei.lin"))
    ann.get_by_role("navigation", name="Console pages").get_by_role("link", name="Withdrawals").click()
    ann.get_by_role("checkbox", name="Choose order INV-2026-0818").check()
    expect(ann.get_by_text("1 chosen")).to_be_visible()
    ann.get_by_role("button", name="Approve orders").click()
    expect(ann.get_by_role("heading", level=1)).to_have_text("Approve this order?")
    check_axe(ann)
    ann.get_by_role("button", name="Approve", exact=True).click()
    expect(ann.get_by_text("First of two approvals given")).to_be_visible()
    ann.get_by_role("link", name="Back to the queue").click()
    expect(ann.get_by_role("row", name="INV-2026-0818")).to_contain_text("1 of 2")
    shot(ann, "console-approvals")
    ann.goto(f"{QUEUE}/{order}")
    expect(ann.get_by_role("button", name="Approve")).to_have_count(0)
    ben = open_signed_in(visits, people.signed_in("owner", name="jonas"))
    ben.goto(f"{QUEUE}/{order}")
    ben.get_by_role("button", name="Approve").click()
    dialog = ben.get_by_role("dialog", name="Approve this order?")
    expect(dialog).to_contain_text("a payment can't be called back")
    check_axe(ben)
    dialog.get_by_role("button", name="Approve").click()
    expect(ben.locator(".toast")).to_contain_text("Approved: it is paid next.")
    # The first operator's page was left open. It updates by itself up to the end.
    life = ann.locator(".timeline")
    expect(life).to_contain_text(re.compile(r"First approval.*mei\.lin.*Second approval.*jonas", re.DOTALL))
    expect(life).to_contain_text("Transfer 1 taken by a node")
    expect(life.locator("[aria-current=step]")).to_contain_text("Final on the chain")
    expect(life).to_contain_text("Paid: the transfer is final on the chain", timeout=30_000)
    expect(life.locator(".step").last).to_contain_text("Merchant told", timeout=30_000)
    expect(ann.locator("#order-state")).not_to_have_attribute("hx-get", re.compile("."))
    expect(ann.locator(".answer")).to_have_text("success")
    expect(ann.get_by_role("cell", name="Withdrawal paid").first).to_be_visible()
    check_axe(ann)
    shot(ann, "console-order")


def test_a_bulk_decision_tells_each_orders_outcome(visits: Visits, people: People, till: Till) -> None:
    names = ("BULK-1", "BULK-2")
    orders = [till.order("60", mcOrderId=name) for name in names]
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto(f"{QUEUE}?merchant={till.shop.merchant_id}")
    expect(page.get_by_role("button", name="Cancel orders")).to_be_disabled()
    for name in names:
        page.get_by_role("checkbox", name=f"Choose order {name}").check()
    expect(page.get_by_text("2 chosen")).to_be_visible()
    page.get_by_role("button", name="Cancel orders").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 2 orders?")
    # Meanwhile another operator has cancelled one of them.
    people.signed_in("operator").post(f"{QUEUE}/cancel", {"order": str(orders[0]), "confirmed": "1"})
    page.get_by_role("button", name="Cancel orders").click()
    expect(page.get_by_text("1 of 2 went through")).to_be_visible()
    expect(page.get_by_role("row", name="BULK-1")).to_contain_text("the order has moved on meanwhile")
    expect(page.get_by_role("row", name="BULK-2")).to_contain_text("back in the merchant's balance")


def test_on_a_phone_the_question_before_an_approval_is_a_line_and_not_a_column(
    visits: Visits, people: People, till: Till
) -> None:
    order = till.order("60", mcOrderId="INV-2026-0830")
    page = open_signed_in(visits, people.signed_in("operator"), PHONE)
    page.goto(f"{QUEUE}/{order}")
    page.get_by_role("button", name="Approve").click()
    title = page.get_by_role("heading", name="Approve this order?")
    expect(title).to_be_visible()
    assert title.bounding_box()["height"] < 40  # type: ignore[index]  # it is visible, so it has a box


@each_language
def test_on_a_phone_all_orders_can_be_chosen_and_the_menu_says_how_much_waits(
    visits: Visits, people: People, till: Till, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_cache, "KEPT_S", 0.0)
    till.order("62")
    till.order("63")
    person = people.signed_in("operator")
    page = open_signed_in(visits, person, PHONE, language=language)
    page.goto(QUEUE)
    boxes = page.locator("tbody input[type=checkbox]")
    everything = page.get_by_role("checkbox", name="Choose all" if language == "en" else "全选")
    expect(everything).to_have_count(1)
    everything.check()
    expect(page.locator("tbody input:checked")).to_have_count(boxes.count())
    boxes.first.uncheck()
    assert everything.evaluate("box => box.indeterminate")
    everything.check()
    everything.uncheck()
    expect(page.locator("tbody input:checked")).to_have_count(0)
    menu = page.get_by_role("button", name="Menu" if language == "en" else "菜单")
    shown = page.locator("#menu-count")
    waits = page.locator("#inbox-count > [aria-hidden]").text_content()
    expect(shown).to_be_visible()
    name = f"Menu {waits} for you" if language == "en" else f"菜单 {waits} 项待您处理"
    expect(menu).to_have_accessible_name(name)
    before = int(waits or 0)
    till.order("64")
    page.evaluate("document.querySelector('#banner').dispatchEvent(new Event('seen'))")
    expect(shown.locator("[aria-hidden]")).to_have_text(str(before + 1))
    require_looks(page, colours=language == "en")
    page.set_viewport_size({"width": DESKTOP.width, "height": DESKTOP.height})
    expect(menu).to_be_hidden()


def test_an_auditor_finds_nothing_to_press(visits: Visits, people: People, till: Till) -> None:
    page = open_signed_in(visits, people.signed_in("auditor"))
    order = till.order("61")
    for path in (QUEUE, f"{QUEUE}/{order}", "/console/rates", "/console/adjustments", "/console/callbacks"):
        page.goto(path)
        main = page.locator("#main")
        expect(main.locator("form[method=post]")).to_have_count(0)
        expect(main.locator("[data-opens]")).to_have_count(0)


def test_a_merchants_user_sees_nothing_of_another_merchant(
    visits: Visits, people: People, till: Till
) -> None:
    page = open_signed_in(visits, people.signed_in("merchant", till.shop.merchant_id))
    for path in (
        QUEUE,
        f"{QUEUE}/all",
        "/console/deposits",
        "/console/callbacks?state=all",
        "/console/books",
    ):
        page.goto(path)
        expect(page.locator("body")).not_to_contain_text("Quayside")
        expect(page.locator("body")).not_to_contain_text("QB-51")
    page.get_by_role("combobox").first.fill("QB-51")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing was found")).to_be_visible()
    page.goto(QUEUE)
    expect(page.get_by_role("button", name="Approve orders")).to_have_count(0)


def test_a_statement_is_read_filtered_and_taken_home(
    visits: Visits, people: People, till: Till, tmp_path: Path, shot: Shot
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto("/console/books")
    page.get_by_role("link", name="Harbour Tea & Coffee").click()
    page.get_by_role("link", name="merchant:USDT", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("merchant:USDT")
    shot(page, "console-statement")
    page.get_by_label("Kind").select_option("withdraw")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("rowheader", name="Withdrawal created").first).to_be_visible()
    expect(page.get_by_role("rowheader", name="Adjustment")).to_have_count(0)
    page.get_by_text("Download", exact=True).click()
    with page.expect_download() as coming:
        page.get_by_role("link", name="CSV").click()
    kept = tmp_path / "statement.csv"
    coming.value.save_as(kept)
    assert coming.value.suggested_filename == f"book-{till.shop.merchant_id}-merchant-USDT.csv"
    assert kept.read_text().startswith("entryId,atMs,kind")


def test_a_book_is_verified_while_one_looks_on(visits: Visits, people: People, till: Till) -> None:
    page = open_signed_in(visits, people.signed_in("auditor"))
    page.goto(f"/console/books/{till.shop.merchant_id}")
    page.get_by_role("link", name="Verify").click()
    page.get_by_role("button", name="Verify now").click()
    expect(page.get_by_text("The book is sound")).to_be_visible()


def test_an_adjustment_goes_from_one_person_to_another(visits: Visits, people: People, till: Till) -> None:
    ann = open_signed_in(visits, people.signed_in("operator"))
    ann.goto("/console/adjustments")
    ann.get_by_role("link", name="Propose one").click()
    ann.get_by_label("Merchant").fill("Harbour Tea & Coffee")
    ann.get_by_label("Credit: add to the account").check()
    ann.get_by_label("Amount").fill("not much")
    ann.get_by_label("Reason").fill("goodwill, ticket 12")
    ann.get_by_role("button", name="Propose").click()
    visits.allow("422")
    expect(ann.get_by_text("An amount above 0")).to_be_visible()
    expect(ann.get_by_label("Reason")).to_have_value("goodwill, ticket 12")
    ann.get_by_label("Amount").fill("12.5")
    ann.get_by_role("button", name="Propose").click()
    expect(ann.locator(".toast")).to_contain_text("Another person must accept it.")
    ben = open_signed_in(visits, people.signed_in("owner"))
    ben.goto(ann.url)
    ben.get_by_role("button", name="Accept", exact=True).click()
    ben.get_by_role("dialog").get_by_role("button", name="Accept and carry out").click()
    expect(ben.get_by_text("Carried out", exact=True)).to_be_visible()


def list_states(platform: Platform, till: Till) -> list[str]:
    """Pages in states that need records: what is full, empty, filtered, undone, refused or a finding."""
    made, shop = People(platform), till.shop
    shop.client.expect(40101, "getMerchantBalance", sign="0" * 32)
    event = make_event(shop, "dead_letter")
    try_once(shop, event, 500, b"<html><h1>Internal Server Error</h1></html>", "HTTP status 500")
    tx_hash = arrive(shop, "undone")
    stolen = Movement("0x" + "cd" * 32, 0, True, 55, bytes(19) + b"\1", bytes(19) + b"\2", 7 * COIN)
    keep(platform, [JudgedMovement(stolen, at_hot=True, is_booked=False)], 93 * COIN, platform.clock())
    reason = "entered twice, see entry 8589934594"
    proposal = propose(made.signed_in("operator"), shop, direction="debit", reason=reason)
    waiting = {"chainType": "ERC20", "extUserId": "player-7", "amount": "5", "finality": "manual"}
    act(shop, "deposit", **waiting)
    order, number = till.order("25001"), platform.rows("select max(reconciliation_no) from reconciliation")
    made.leave()
    own, book = f"/console/merchants/{shop.merchant_id}", f"/console/books/{shop.merchant_id}"
    return [
        own,
        f"{own}/refusals",
        f"{own}/sandbox",
        "/console/merchants?q=nobody",
        f"{QUEUE}?merchant=nobody",
        f"{QUEUE}/all?status=5",
        f"{QUEUE}/{order}",
        book,
        f"{book}?kind=expire",
        f"{book}/accounts/1",
        f"{book}/entries/{order}",
        "/console/deposits?chain=TRC20",
        f"/console/deposits/ERC20/{tx_hash}/0",
        "/console/callbacks?state=paused",
        f"/console/callbacks/{event}",
        "/console/reconciliation/TRC20",
        f"/console/reconciliation/ERC20/{number[0][0]}",
        proposal,
        "/console/search?q=harbour+or+nothing",
        "/console/inbox?show=all",
    ]
