"""The console in a real browser: signing in, opening a merchant, setting its fees, and every page for
every role.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Screen, Shot, Visits
from tests.console.conftest import PASSWORD, ConsoleUser, People
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.operators import totp

WORKING = True
DAILY_VOLUMES = (
    31,
    42,
    38,
    55,
    61,
    20,
    18,
    44,
    52,
    49,
    66,
    71,
    25,
    22,
    58,
    63,
    60,
    74,
    82,
    31,
    28,
    69,
    77,
    73,
    88,
    95,
    40,
)
"""The volume of each of the last days, in thousands."""


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def fill_weeks(platform: Platform, shop: Shop) -> None:
    """Give a merchant weeks of figures."""
    today = platform.clock() // DAY_MS
    for back, thousands in enumerate(reversed(DAILY_VOLUMES), 1):
        for movement, share in (
            ("deposit", 10),
            ("settle", 7),
            ("user_to_merchant", 4),
            ("merchant_to_user", 2),
        ):
            units = thousands * share * 95_000_000
            platform.rows(
                "insert into daily_figure (merchant_id, day, kind, currency, entries, amount, fee)"
                " values (0, %s, %s, 'USDT', 40, %s, %s)",
                today - back,
                movement,
                units,
                units // 500 if movement in ("settle", "user_to_merchant") else 0,
            )


def _fill_audit_log(platform: Platform, shop: Shop) -> None:
    """Make two entries of the audit log."""
    staff = People(platform)
    owner = staff.signed_in("owner")
    for action in ("pause", "resume"):
        assert owner.post(f"/console/callbacks/merchants/{shop.merchant_id}/{action}").status_code == 303
    staff.leave()


@pytest.fixture(scope="module")
def busy_shop(platform: Platform) -> Shop:
    """A merchant with realistic content: customers, refusals, several kinds of withdrawals, weeks of
    figures.
    """
    shop = platform.open_merchant(
        name="Harbour Tea & Coffee", approval_limit="5000", withdraw_fee_rate="0.002"
    )
    platform.open_merchant(name="Quayside Books", currency_mode="USDT")
    shop.fund("USDT", "184250.75")
    shop.fund("KFB", "920400")
    made = shop.client.do("getMerchantCustomer", extUserId="player-7").data
    for amount in ("120.50", "80"):
        shop.client.do(
            "transferFromMerchantToUser",
            mcOrderId=shop.next_order(),
            address=made["address"],
            amount=amount,
            currency="KFB",
        )
    for amount in ("250", "1200", "9000", "64000"):
        shop.client.do(
            "createMerchantWithdrawOrder",
            mcOrderId=shop.next_order(),
            amount=amount,
            currency="USDT",
            chainType="TRC20",
            address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
            notifyUrl="http://127.0.0.1:9/told",
        )
    shop.client.expect(40101, "getMerchantBalance", sign="0" * 32)
    _fill_audit_log(platform, shop)
    fill_weeks(platform, shop)
    return shop


def open_signed_in(
    visits: Visits,
    person: ConsoleUser,
    screen: Screen = DESKTOP,
    *,
    language: str = "en",
    theme: str = "light",
    has_scripts: bool = True,
) -> Page:
    """Open a page with an operator's session."""
    url = f"http://127.0.0.1:{person.platform.port}"
    page = visits.open(screen, url=url, language=language, theme=theme, java_script_enabled=has_scripts)
    page.context.add_cookies(
        [{"name": COOKIE, "value": person.http.cookies[COOKIE], "url": f"{url}/console", "httpOnly": True}]
    )
    return page


def enrol(page: Page, person: ConsoleUser) -> None:
    """Sign in for the first time, by typing."""
    page.goto("/console")
    page.get_by_label("Name").fill(person.name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Can't scan it?").click()
    person.secret = page.locator("[data-secret]").inner_text()
    page.get_by_label("The six digits it shows now").fill(person.code())
    page.get_by_role("button", name="Confirm").click()


def test_an_owner_signs_in_for_the_first_time_and_comes_back(
    visits: Visits, people: People, busy_shop: Shop, check_axe: CheckAxe, shot: Shot
) -> None:
    owner = people.newcomer("owner", name="mei.lin")
    page = visits.open(DESKTOP, url=f"http://127.0.0.1:{owner.platform.port}")
    page.goto("/console/merchants?q=harbour")
    check_axe(page)
    shot(page, "console-sign-in")
    enrol(page, owner)
    expect(page.get_by_role("heading", level=1)).to_have_text("Keep your recovery codes")
    expect(page.locator(".codes li")).to_have_count(totp.RECOVERY_CODES)
    check_axe(page)
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.locator("summary.who").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password", exact=True)).to_be_visible()
    page.goto("/console/merchants?q=harbour")
    page.get_by_label("Name").fill(owner.name)
    page.get_by_label("Password", exact=True).fill("not the password")
    page.get_by_role("button", name="Continue").click()
    visits.allow("422")
    expect(page.get_by_role("alert")).to_contain_text("Name or password is wrong")
    expect(page.get_by_label("Name")).to_have_value(owner.name)
    check_axe(page)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    check_axe(page)
    page.get_by_label("Six-digit code").fill(owner.code(1))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Merchants")
    expect(page.get_by_role("link", name="Harbour Tea & Coffee")).to_be_visible()


def test_a_merchant_is_opened_and_priced_with_a_preview(
    visits: Visits, people: People, busy_shop: Shop, check_axe: CheckAxe
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto("/console/merchants")
    page.get_by_role("link", name="New merchant").click()
    page.get_by_label("Name").fill("Lantern & Sons")
    page.get_by_role("button", name="Open the merchant").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lantern & Sons is open")
    check_axe(page)
    page.get_by_role("button", name="Copy App secret").click()
    page.get_by_role("link", name="I have kept it").click()
    page.get_by_role("link", name="Fees and rates").click()
    preview = page.locator("#preview")
    expect(preview).to_contain_text("1,000.00USDT")
    page.get_by_label("Withdrawal fee", exact=True).fill("0.5%")
    expect(preview).to_contain_text("995.00USDT")
    page.get_by_label("Amount").fill("200")
    page.get_by_label("Smallest withdrawal fee").fill("3")
    expect(preview).to_contain_text("197.00USDT")
    page.get_by_label("Own rate").first.fill("7.05")
    expect(preview).to_contain_text("1,410.00KFB")
    page.get_by_label("Withdrawal fee", exact=True).fill("five")
    expect(preview).to_contain_text("The fee is not a value.")
    page.get_by_label("Withdrawal fee", exact=True).fill("0.5%")
    page.get_by_role("button", name="Save fees").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    page.get_by_label("Own rate").first.fill("7.05")
    page.get_by_role("button", name="Set the rate").first.click()
    expect(page.get_by_text("Own rate", exact=True).first).to_be_visible()
    expect(page.get_by_text("1 USDT = 7.05 KFB")).to_be_visible()
    check_axe(page)


def test_settings_that_are_wrong_keep_what_was_typed(visits: Visits, people: People, busy_shop: Shop) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto(f"/console/merchants/{busy_shop.merchant_id}/settings")
    page.get_by_label("Limit of orders a day").fill("plenty")
    page.get_by_label("Networks that requests may come from").fill("127.0.0.0/8\n999.1.1.1")
    page.get_by_role("button", name="Save settings").click()
    visits.allow("422")
    expect(page.get_by_role("alert")).to_contain_text("2 fields must be corrected")
    expect(page.get_by_label("Limit of orders a day")).to_have_value("plenty")
    expect(page.get_by_label("Limit of orders a day")).to_be_focused()
    expect(page.get_by_label("Limit of orders a day")).to_be_in_viewport()
    expect(page.get_by_label("Networks that requests may come from")).to_have_value("127.0.0.0/8\n999.1.1.1")
    page.get_by_label("Limit of orders a day").fill("250000")
    page.get_by_label("Networks that requests may come from").fill("")
    page.get_by_role("button", name="Save settings").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    expect(page.get_by_label("Limit of orders a day")).to_have_value("250000")


def test_a_step_that_hurts_asks_first_and_keys_are_enough(
    visits: Visits, people: People, busy_shop: Shop, shot: Shot
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto(f"/console/merchants/{busy_shop.merchant_id}")
    shot(page, "console-merchant")
    opener = page.get_by_role("button", name="Suspend", exact=True)
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Suspend Harbour Tea & Coffee?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox").first).to_be_focused()
    opener.click()
    dialog.get_by_role("button", name="Suspend").click()
    expect(page.locator(".toast")).to_contain_text("is suspended")
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".toast")).to_contain_text("is active again")


def test_the_overview_changes_while_it_is_looked_at(
    visits: Visits, people: People, busy_shop: Shop, shot: Shot
) -> None:
    page = open_signed_in(visits, people.signed_in("owner", name="ana"))
    page.goto("/console")
    held = page.locator("#overview-state .stat-value").first
    before = held.inner_text()
    expect(page.locator(".chart canvas").first).to_be_visible()
    shot(page, "console-overview")
    busy_shop.fund("USDT", "0.25")
    expect(held).not_to_have_text(before, timeout=20_000)
    page.get_by_text("Show as a table").first.click()
    expect(page.locator("figure.chart").first.locator("details tbody tr")).to_have_count(30)
    page.get_by_role("link", name="7 days").click()
    expect(page).to_have_url(re.compile("days=7"))


def test_a_chart_with_a_long_legend_leaves_room_for_its_table(
    visits: Visits, people: People, busy_shop: Shop
) -> None:
    page = open_signed_in(visits, people.signed_in("owner"), PHONE)
    page.goto("/console")
    expect(page.locator(".u-legend").first).to_contain_text("To sub-users")
    page.get_by_text("Show as a table").first.click()
    expect(page.locator("figure.chart").first.locator("details tbody tr")).to_have_count(30)


def test_filters_that_are_left_empty_stay_out_of_the_address(
    visits: Visits, people: People, busy_shop: Shop
) -> None:
    page = open_signed_in(visits, people.signed_in("owner"))
    page.goto(f"/console/books/{busy_shop.merchant_id}")
    page.get_by_label("Kind").select_option("withdraw")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"\?kind=withdraw$"))
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(re.compile(rf"/books/{busy_shop.merchant_id}$"))


def test_a_refused_request_is_looked_into_in_the_debugger(
    visits: Visits, people: People, busy_shop: Shop, check_axe: CheckAxe
) -> None:
    page = open_signed_in(visits, people.signed_in("auditor"))
    page.goto(f"/console/merchants/{busy_shop.merchant_id}/refusals")
    page.locator("summary", has_text="getMerchantBalance").first.click()
    check_axe(page)
    page.get_by_role("link", name="Open in the debugger").first.click()
    page.get_by_label("Your string to sign").fill("/merchant/getMerchantBalance\nappKey=x")
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_text("The string to sign")).to_be_visible()
    expect(page.locator(".code-block mark")).to_have_count(2)
    check_axe(page)
