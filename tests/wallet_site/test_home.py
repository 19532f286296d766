"""A sub-user sees the balance and every movement of its own wallet, and of no other."""

import re

import pytest
from tests.journeys.conftest import Platform, Shop
from tests.wallet_site.conftest import Browser, let_arrive, texts

PAY, TOP_UP = "transferFromUserToMerchant", "transferFromMerchantToUser"
CLOCK_MS = 1_763_712_000_000


def entries(page: object) -> list[int]:
    """The ids of the movements on a page, in order."""
    return [int(found) for found in re.findall(r'data-entry="(\d+)"', str(getattr(page, "text", page)))]


def test_balance_name_and_movements_are_on_the_first_page(platform: Platform, browser: Browser) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    shop.fund("KFB", "1000")
    alice = shop.user("alice", "100")
    shop.client.do(TOP_UP, mcOrderId="t1", amount="50.5", address=alice["address"], currency="KFB")
    shop.client.do(PAY, mcOrderId="c1", amount="30.25", extUserId="alice", currency="KFB")
    said = texts(browser.open(alice["url"]))
    assert re.search(r"Balance .*live .*120\.25 KFB alice", said)
    assert "You paid Harbour Tea 2025-11-21 08:00:00 UTC · Order c1 \u221230.25 KFB" in said
    assert "Harbour Tea paid you 2025-11-21 08:00:00 UTC · Order t1 +50.50 KFB" in said
    assert "Credit by the platform 2025-11-21 08:00:00 UTC +100.00 KFB" in said


def test_an_empty_wallet_says_what_to_do(shop: Shop, browser: Browser) -> None:
    said = texts(browser.open(shop.user("alice")["url"]))
    assert "No movements yet" in said
    assert "Receive money" in said


def test_the_list_goes_on_to_the_very_first_movement_and_none_comes_twice(
    shop: Shop, browser: Browser
) -> None:
    alice = shop.user("alice", "1")
    for count in range(45):
        shop.client.do(TOP_UP, mcOrderId=f"t{count}", amount="1", address=alice["address"], currency="KFB")
    page, seen = browser.open(alice["url"]), []
    while True:
        seen.append(entries(page))
        more = re.search(r'hx-get="(/wallet/activity\?before=\d+)"', page.text)
        if more is None:
            break
        page = browser.part(more[1])
        assert "<html" not in page.text
    assert [len(found) for found in seen] == [20, 20, 6]
    together = [entry for found in seen for entry in found]
    assert together == sorted(set(together), reverse=True)
    assert browser.get("/wallet/activity").text.count("data-entry=") == 20


def test_in_and_out_can_be_looked_at_apart(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "100")
    shop.client.do(PAY, mcOrderId="c1", amount="30", extUserId="alice", currency="KFB")
    page = browser.open(alice["url"])
    everything = entries(page)
    assert entries(browser.get("/wallet?direction=out")) == everything[:1]
    assert entries(browser.get("/wallet?direction=in")) == everything[1:]
    assert entries(browser.get("/wallet?direction=sideways")) == everything


def test_what_has_come_in_since_is_asked_for_without_the_way_to_older_ones(
    shop: Shop, browser: Browser
) -> None:
    alice = shop.user("alice", "1")
    for count in range(25):
        shop.client.do(TOP_UP, mcOrderId=f"t{count}", amount="1", address=alice["address"], currency="KFB")
    browser.open(alice["url"])
    page = browser.part("/wallet/activity?newest")
    assert len(entries(page)) == 20
    assert "activity-more" not in page.text


@pytest.mark.parametrize("before", ["", "0", "-1", "x", "9" * 40, "1e3", "١", "1;drop table entry"])
def test_an_invalid_page_key_is_no_fault(shop: Shop, browser: Browser, before: str) -> None:
    browser.open(shop.user("alice", "1")["url"])
    assert browser.client.get("/wallet/activity", params={"before": before}).status_code == 200


def test_a_movement_is_shown_in_full(platform: Platform, browser: Browser) -> None:
    shop = platform.open_merchant(name="Harbour Tea")
    alice = shop.user("alice", "100")
    shop.client.do(PAY, mcOrderId="cup-7", amount="30", extUserId="alice", currency="KFB")
    newest = entries(browser.open(alice["url"]))[0]
    said = texts(browser.get(f"/wallet/activity/{newest}"))
    for told in (
        "You paid Harbour Tea",
        "\u221230.00 KFB",
        "Completed",
        "cup-7",
        "Balance after 70.00 KFB",
        str(newest),
    ):
        assert told in said
    part = browser.part(f"/wallet/activity/{newest}")
    assert part.text.lstrip().startswith("<dialog")


def test_no_id_leads_to_a_movement_of_another_wallet(
    platform: Platform, browser: Browser, other_browser: Browser
) -> None:
    shop, elsewhere = platform.open_merchant(), platform.open_merchant()
    shop.fund("KFB", "10")
    bob = entries(other_browser.open(shop.user("bob", "5")["url"]))
    stranger = entries(other_browser.open(elsewhere.user("carol", "7")["url"]))
    merchants_own = shop.platform.rows(
        "select min(entry_id) from entry where merchant_id = %s and kind = 'adjust'", shop.merchant_id
    )[0][0]
    mine = entries(browser.open(shop.user("alice", "3")["url"]))
    assert browser.get(f"/wallet/activity/{mine[0]}").status_code == 200
    said = set()
    for entry_id in (bob[0], stranger[0], merchants_own, 1, 2**53, 2**62, 2**80):
        answer = browser.get(f"/wallet/activity/{entry_id}")
        assert answer.status_code == 404, entry_id
        said.add(re.sub(r"req_\w+", "", texts(answer)))
    assert len(said) == 1


def test_hostile_names_stay_text(platform: Platform, browser: Browser) -> None:
    hostile = "<img src=x onerror=alert(1)>\"'`{{7*7}}"
    shop = platform.open_merchant(name=hostile)
    alice = shop.user("'\"><script>x</s")
    shop.fund("KFB", "10", "'\"><script>x</s")
    order = "<svg/onload=alert(2)>"
    shop.client.do(PAY, mcOrderId=order, amount="1", extUserId="'\"><script>x</s", currency="KFB")
    newest = entries(browser.open(alice["url"]))[0]
    for path in (
        "/wallet",
        "/wallet/security",
        "/wallet/profile",
        "/wallet/receive",
        f"/wallet/activity/{newest}",
    ):
        page = browser.get(path)
        assert page.status_code == 200
        for raw in ("<img src=x", "<script>x", "<svg/onload"):
            assert raw not in page.text
        assert hostile in texts(page)


def test_a_deposit_on_its_way_is_shown_and_is_no_movement_yet(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice")
    let_arrive(shop, alice["tronAddress"], 25_000_000)
    said = texts(browser.open(alice["url"]))
    assert "On the way" in said
    assert "Deposit from TRON 12 confirmations so far 25.00 USDT Confirming" in said
    assert "No movements yet" in said


@pytest.mark.parametrize(
    ("status", "cause", "told"),
    [
        ("pending", None, "Confirmed; is being credited"),
        ("pending", "no rate", "Confirmed; waits for an exchange rate"),
        ("held", "screening", "Confirmed; is checked before it is credited"),
        ("dust", None, "Below the minimum; small ones are credited once they add up to it"),
        ("undone", None, "Its network took this payment back"),
    ],
)
def test_each_status_of_a_deposit_has_a_text(
    shop: Shop, browser: Browser, status: str, cause: str | None, told: str
) -> None:
    alice = shop.user("alice")
    let_arrive(shop, alice["address"], 500_000, status, cause=cause)
    assert told in texts(browser.open(alice["url"]))


def test_a_payment_that_its_network_took_back_is_forgotten_after_a_day(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice")
    let_arrive(shop, alice["address"], 500_000, "undone", seen_ms=CLOCK_MS - 86_400_000)
    assert "On the way" not in texts(browser.open(alice["url"]))


def test_deposits_of_others_are_not_shown(shop: Shop, browser: Browser) -> None:
    let_arrive(shop, shop.user("bob")["tronAddress"], 25_000_000)
    assert "On the way" not in texts(browser.open(shop.user("alice")["url"]))


def test_a_suspended_merchants_sub_user_can_read_and_sees_why(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice", "5")
    shop.suspend()
    said = texts(browser.open(alice["url"]))
    assert "5.00" in said
    assert "Your balance stays yours." in said


def test_the_page_speaks_the_language_of_the_browser_and_then_the_one_chosen(
    shop: Shop, browser: Browser
) -> None:
    alice = shop.user("alice", "1234.5")
    page = browser.open(alice["url"], accept_language="zh-CN,zh;q=0.9")
    page = browser.get("/wallet", accept_language="zh-CN,zh;q=0.9")
    assert '<html lang="zh-CN"' in page.text
    assert "余额" in texts(page)
    assert "1,234.50" in texts(page)
    assert "Balance" not in texts(page)
    browser.send("/wallet/profile/language", language="en")
    assert "Balance" in texts(browser.get("/wallet", accept_language="zh-CN"))
