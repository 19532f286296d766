"""One search box for any id, address or hash: a single match opens its page, several are listed."""

import re

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_deposits import arrive
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.book.commands import Cancel

SEARCH = "/console/search"


@pytest.fixture
def order_id(shop: Shop) -> int:
    """A cancelled order with a callback due."""
    shop.change(approval_limit="0")
    fields = withdrawal("an-order-of-mine", "60", "ERC20")
    made = int(shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    shop.ask_book(Cancel(made, "cli:ann"))
    return made


def test_whatever_names_one_thing_leads_straight_to_it(shop: Shop, people: People, order_id: int) -> None:
    shop.user("player/7 ü", "10")
    tx_hash = arrive(shop, "seen")
    operator = people.signed_in("operator")
    app_key, address, user_id = shop.platform.rows(
        "select m.app_key, u.evm_address, u.user_id from merchant m join sub_user u using (merchant_id)"
        " where merchant_id = %s",
        shop.merchant_id,
    )[0]
    leads = {
        str(order_id): f"/console/withdrawals/{order_id}",
        app_key: f"/console/merchants/{shop.merchant_id}",
        tx_hash: f"/console/deposits/ERC20/{tx_hash}/0",
        tx_hash.removeprefix("0x").upper(): f"/console/deposits/ERC20/{tx_hash}/0",
        f"evt_{order_id}_4": f"/console/callbacks/evt_{order_id}_4",
        to_eip55(address): f"/console/merchants/{shop.merchant_id}/users/{user_id}",
    }
    for word, url in leads.items():
        answer = operator.get(SEARCH, params={"q": word})
        assert (answer.status_code, answer.headers.get("location")) == (303, url), word
        assert operator.get(url).status_code == 200, url


def test_what_several_merchants_named_so_is_listed(
    shop: Shop, platform: Platform, people: People, order_id: int
) -> None:
    other = platform.open_merchant(approval_limit="0")
    other.fund("USDT", "100")
    other.client.do("createMerchantWithdrawOrder", **withdrawal("an-order-of-mine", "60", "ERC20"))
    page = people.signed_in("operator").page(f"{SEARCH}?q=an-order-of-mine")
    assert f"/console/withdrawals/{order_id}" in page
    # The entry that created an order has the order's id. Listing it too would show the order twice.
    assert "/entries/" not in page
    assert f"/console/merchants/{other.merchant_id}" in page


def test_a_result_says_its_amount_its_status_and_its_time(
    shop: Shop, platform: Platform, people: People, order_id: int
) -> None:
    other = platform.open_merchant(approval_limit="0")
    other.fund("USDT", "100")
    other.client.do("createMerchantWithdrawOrder", **withdrawal("an-order-of-mine", "75", "ERC20"))
    tx_hash = arrive(shop, "seen")
    operator = people.signed_in("operator")
    rows = re.findall(r"(?s)<tr>.*?</tr>", operator.page(f"{SEARCH}?q=an-order-of-mine"))[1:]
    said = {re.findall(r"merchants/(\d+)", row)[-1]: read_text(row) for row in rows}
    assert "60.00 USDT Cancelled" in said[str(shop.merchant_id)]
    assert "75.00 USDT Pending" in said[str(other.merchant_id)]
    assert all("data-moment" in row for row in rows)
    (row,) = re.findall(r"(?s)<tr>.*?</tr>", operator.page(f"{SEARCH}?q={tx_hash[:12]}"))[1:]
    assert "USDT Confirming" in read_text(row)


def test_a_merchants_user_finds_nothing_of_others(
    shop: Shop, platform: Platform, people: People, order_id: int
) -> None:
    other = platform.open_merchant(name="A Merchant To Be Kept Quiet")
    user = people.signed_in("merchant", other.merchant_id)
    for word in (order_id, "an-order-of-mine", f"evt_{order_id}_4", shop.merchant_id):
        page = user.page(f"{SEARCH}?q={word}")
        assert "Nothing was found" in page
    stranger = people.signed_in("merchant", shop.merchant_id)
    assert "Nothing was found" in stranger.page(f"{SEARCH}?q=Kept Quiet")


def test_nothing_found_says_what_is_looked_for(people: People) -> None:
    operator = people.signed_in("operator")
    assert "What are you looking for?" in operator.page(SEARCH)
    page = operator.page(f'{SEARCH}?q="><img src=x>')
    assert "<img" not in page
    assert "Nothing was found" in page
    assert "Nothing was found" in operator.page(f"{SEARCH}?q={'x' * 3000}")


def test_the_box_in_the_bar_keeps_the_word(people: People) -> None:
    assert 'value="nothing-is-called-so"' in people.signed_in("operator").page(
        f"{SEARCH}?q=nothing-is-called-so"
    )
