"""Deposits in the console: what arrived, its confirmations, and what was credited."""

import secrets

import pytest
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.book.commands import CreditDeposit, DepositKey
from merchant_wallet.book.outcomes import Credited

SETTINGS = {"erc20_explorer": "https://scan.example/tx/{tx}?utm=a&b"}
DEPOSITS = "/console/deposits"
COIN = 1_000_000


def arrive(shop: Shop, status: str, amount_units: int = 5 * COIN, block: int = 100) -> str:
    """A deposit to the merchant's own address, as the watcher records it. Returns its transaction hash."""
    tx_hash = "0x" + secrets.token_hex(32)
    address = own_address(shop)
    is_final = status not in ("seen", "undone")
    shop.platform.rows(
        "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
        " address, user_id, amount, status, seen_ms, final_ms)"
        " values (%s, 'ERC20', %s, 0, %s, 'b', %s, %s, null, %s, %s, 1, %s)",
        shop.merchant_id,
        tx_hash,
        block,
        bytes(20),
        address,
        amount_units,
        status,
        2 if is_final else None,
    )
    return tx_hash


def own_address(shop: Shop) -> bytes:
    found = shop.platform.rows(
        "select address from merchant_address where merchant_id = %s and chain = 'ERC20'", shop.merchant_id
    )
    return bytes(found[0][0])


def test_a_deposit_is_followed_from_its_block_to_its_credit(shop: Shop, people: People) -> None:
    operator, mine = people.signed_in("operator"), f"{DEPOSITS}?merchant={shop.merchant_id}"
    tx_hash = arrive(shop, "seen")
    assert "Confirming" in read_text(operator.page(mine).split("<tbody>")[1])
    shop.platform.rows("update deposit set status = 'pending', final_ms = 2 where tx_hash = %s", tx_hash)
    assert "Final, to be credited" in read_text(operator.page(mine).split("<tbody>")[1])
    key = DepositKey("ERC20", tx_hash, 0)
    done = shop.ask_book(CreditDeposit(key, own_address(shop), 5 * COIN, wants_callback=True))
    assert isinstance(done, Credited)
    page = operator.page(f"{DEPOSITS}/ERC20/{tx_hash}/0")
    assert f"/entries/{done.entry_id}" in page
    assert f"evt_{done.entry_id}_deposit" in page
    assert "The book has credited it, once and for good." in read_text(page)


def test_deposits_are_filtered_by_status_address_transaction_and_day(shop: Shop, people: People) -> None:
    operator, dust, seen = people.signed_in("operator"), arrive(shop, "dust"), arrive(shop, "seen")

    def listed(query: str) -> list[str]:
        page = operator.page(f"{DEPOSITS}?merchant={shop.merchant_id}{query}")
        return [one for one in (dust, seen) if f"/{one}/0" in page]

    assert listed("") == [dust, seen]
    assert listed("&status=dust") == [dust]
    assert listed(f"&tx={seen}") == [seen]
    assert listed(f"&address={to_eip55(own_address(shop))}") == [dust, seen]
    assert listed("&address=nonsense") == []
    assert listed("&chain=TRC20") == []
    assert listed("&from=2020-01-01") == []
    assert operator.get(f"{DEPOSITS}?after=nonsense").status_code == 404


def test_a_merchants_user_finds_its_own_deposits_alone(
    shop: Shop, platform: Platform, people: People
) -> None:
    other = platform.open_merchant()
    foreign, mine = arrive(other, "seen"), arrive(shop, "seen")
    user = people.signed_in("merchant", shop.merchant_id)
    for query in (
        "",
        f"?merchant={other.merchant_id}",
        f"?tx={foreign}",
        f"?address={to_eip55(own_address(other))}",
    ):
        assert f"/ERC20/{foreign}/0" not in user.page(f"{DEPOSITS}{query}")
    assert f"/ERC20/{mine}/0" in user.page(DEPOSITS)
    assert user.get(f"{DEPOSITS}/ERC20/{foreign}/0").status_code == 404
    assert user.get(f"{DEPOSITS}/TRC20/{mine}/0").status_code == 404


def test_a_transaction_leads_to_the_explorer_that_the_settings_name(shop: Shop, people: People) -> None:
    tx_hash = arrive(shop, "seen")
    page = people.signed_in("auditor").page(f"{DEPOSITS}/ERC20/{tx_hash}/0")
    link = f'href="https://scan.example/tx/{tx_hash}?utm=a&amp;b" target="_blank" rel="noopener noreferrer"'
    assert link in page


@pytest.mark.parametrize("status", ["held", "pending", "credited"])
def test_a_merchants_user_is_told_no_cause_and_no_command_of_the_platforms(
    shop: Shop, people: People, status: str
) -> None:
    tx_hash = arrive(shop, status)
    shop.platform.rows("update deposit set cause = 'the desk has 3 KFB' where tx_hash = %s", tx_hash)
    told = read_text(people.signed_in("merchant", shop.merchant_id).page(f"{DEPOSITS}/ERC20/{tx_hash}/0"))
    assert "The platform is looking into this deposit" in told
    for secret in ("the desk has", "deposits release", "deposits drop", "A person must decide"):
        assert secret not in told
    assert "the desk has 3 KFB" in read_text(
        people.signed_in("operator").page(f"{DEPOSITS}/ERC20/{tx_hash}/0")
    )
