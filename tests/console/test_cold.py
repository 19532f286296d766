"""Cold money in the console: two people decide about wallet, limits and transfers; signatures come back."""

from collections.abc import Iterator
from typing import Any

import pytest
from coincurve import PrivateKey
from tests.cold.cold_scene import COLD, COLD_KEY
from tests.console.conftest import People, read_text
from tests.console.money_scene import HOT, begin_cold_transfer
from tests.console.two_people import accept, last_entry, proposal_of
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.evm import transactions as evm

SETTINGS = {"sandbox_two_people": True}
COLD_PAGE = "/console/cold"
WHY = "what payouts do not need"
ADDRESS = format_address("ERC20", COLD)
USDT = 1_000_000


@pytest.fixture(autouse=True)
def hot_wallet(platform: Platform) -> Iterator[None]:
    """The hot wallet holds 1000 USDT, read just now."""
    platform.rows("delete from cold_signed")
    platform.rows("delete from cold_transfer")
    platform.rows("delete from cold_limit")
    platform.rows("delete from cold_wallet")
    platform.rows(
        "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
        " values ('ERC20', %s, %s, 0, %s) on conflict (chain) do update"
        " set address = excluded.address, funds = excluded.funds, checked_ms = excluded.checked_ms",
        *(HOT, 1000 * USDT, platform.clock()),
    )
    yield
    platform.rows("delete from cold_signed")
    platform.rows("delete from cold_transfer")
    platform.rows("delete from hot_wallet")


def register(platform: Platform) -> None:
    platform.rows("insert into cold_wallet (chain, address, registered_ms) values ('ERC20', %s, 1)", COLD)


def test_two_people_register_a_cold_wallet_set_limits_and_move_money(
    platform: Platform, people: People
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    url = proposal_of(ann.post(f"{COLD_PAGE}/ERC20/wallet", {"address": ADDRESS, "reason": WHY}))
    assert platform.rows("select count(*) from cold_wallet") == [(0,)]
    assert "your own proposal" in read_text(accept(ann, url).text)
    assert ADDRESS in read_text(bob.page(url))
    bob.follow(accept(bob, url))
    assert platform.rows("select address, retired_ms from cold_wallet") == [(COLD, None)]
    form = {"most": "500", "target": "300", "least": "100", "reason": WHY}
    bob.follow(accept(bob, proposal_of(ann.post(f"{COLD_PAGE}/ERC20/limits", form))))
    page = read_text(bob.page(COLD_PAGE))
    # 1000 are hot, and 300 should be.
    assert "Too much is hot" in page
    assert 'value="700"' in bob.page(COLD_PAGE)
    form = {"direction": "to_cold", "amount": "700", "reason": WHY}
    url = proposal_of(ann.post(f"{COLD_PAGE}/ERC20/move", form))
    assert platform.rows("select count(*) from cold_transfer") == [(0,)]
    bob.follow(accept(bob, url))
    [row] = platform.rows(
        "select chain, direction, way, hot, cold, amount::bigint, approved_by, step from cold_transfer"
    )
    assert row == ("ERC20", "to_cold", "signer", HOT, COLD, 700 * USDT, f"operator:{bob.name}", "open")
    actor, action, _, after = last_entry(platform)
    assert (actor, action, after["amount"]) == (f"operator:{bob.name}", "cold.transfer", "700")
    assert "A transfer is under way" in read_text(bob.page(COLD_PAGE))
    again = ann.post(f"{COLD_PAGE}/ERC20/move", form)
    assert (again.status_code, "is under way" in read_text(again.text)) == (422, True)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("0x12", "no address of this chain"),
        (format_address("ERC20", bytes(20)), "no wallet"),
        (format_address("ERC20", HOT), "a hot wallet of ours"),
        (format_address("TRC20", COLD), "no address of this chain"),
    ],
)
def test_only_a_foreign_address_of_the_chain_becomes_a_cold_wallet(
    people: People, address: str, said: str
) -> None:
    answer = people.signed_in("operator").post(
        f"{COLD_PAGE}/ERC20/wallet", {"address": address, "reason": WHY}
    )
    assert (answer.status_code, said in read_text(answer.text)) == (422, True)


def test_a_deposit_address_becomes_no_cold_wallet(platform: Platform, people: People) -> None:
    platform.rows(
        "insert into issued_address (address, merchant_id) values (%s, 1) on conflict do nothing", COLD
    )
    try:
        answer = people.signed_in("operator").post(
            f"{COLD_PAGE}/ERC20/wallet", {"address": ADDRESS, "reason": WHY}
        )
        assert "a deposit address of ours" in read_text(answer.text)
    finally:
        platform.rows("delete from issued_address where address = %s", COLD)


def test_an_address_with_an_open_order_becomes_no_cold_wallet(
    platform: Platform, shop: Shop, people: People
) -> None:
    shop.fund("USDT", "100")
    shop.change(approval_limit="0")
    address = format_address("ERC20", b"C" * 20)
    fields = withdrawal(shop.next_order(), "60", "ERC20", address=address.lower())
    order = shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"]
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    form = {"address": address, "reason": WHY}
    refused = ann.post(f"{COLD_PAGE}/ERC20/wallet", form)
    assert (refused.status_code, "An order to that address is open" in read_text(refused.text)) == (422, True)
    ann.post("/console/withdrawals/cancel", {"order": str(order), "confirmed": "1", "back": "order"})
    url = proposal_of(ann.post(f"{COLD_PAGE}/ERC20/wallet", form))
    # Between the two, a payout to it was reserved. Home knows that, whichever cell has the order.
    platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_until_ms)"
        " values (1, 1, 'BEP20', 0, 0)"
    )
    platform.rows(
        "insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms,"
        " recipient) values (1, 1, 'BEP20', %s, 1, 0, %s)",
        *(HOT, b"C" * 20),
    )
    assert "is open" in read_text(bob.follow(accept(bob, url)).text)
    platform.rows("update payout_reservation set ended_no = 1")
    bob.follow(accept(bob, proposal_of(ann.post(f"{COLD_PAGE}/ERC20/wallet", form))))
    assert platform.rows("select address from cold_wallet") == [(b"C" * 20,)]
    platform.rows("delete from payout_reservation")
    platform.rows("delete from payout where merchant_id = 1")


def test_a_proposal_fails_if_the_cold_wallet_was_changed_meanwhile(
    platform: Platform, people: People
) -> None:
    register(platform)
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    form = {"direction": "to_cold", "amount": "700", "reason": WHY}
    url = proposal_of(ann.post(f"{COLD_PAGE}/ERC20/move", form))
    platform.rows("update cold_wallet set retired_ms = registered_ms")
    platform.rows("insert into cold_wallet values ('ERC20', %s, 1)", b"Z" * 20)
    assert "could not be carried out" in read_text(bob.follow(accept(bob, url)).text)
    assert platform.rows("select count(*) from cold_transfer") == [(0,)]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"most": "1", "target": "2", "least": "0"}, "must be in this order"),
        ({"most": "x", "target": "2", "least": "0"}, "at most 6 decimals"),
    ],
)
def test_limits_that_make_no_sense_are_refused(people: People, form: dict[str, str], said: str) -> None:
    answer = people.signed_in("operator").post(f"{COLD_PAGE}/ERC20/limits", {**form, "reason": WHY})
    assert (answer.status_code, said in read_text(answer.text)) == (422, True)


def test_a_signature_from_elsewhere_is_checked_and_taken_once(
    platform: Platform, shop: Shop, people: People
) -> None:
    number = begin_cold_transfer(shop)
    [(unsigned,)] = platform.rows("select unsigned from cold_transfer where transfer_id = %s", number)
    bob = people.signed_in("operator")
    url = f"{COLD_PAGE}/transfers/{number}"
    assert "Sign it elsewhere" in read_text(bob.page(url))
    document: dict[str, Any] = bob.get(f"{url}/unsigned").json()
    assert document["unsigned"] == "0x" + unsigned.hex()
    assert (document["from"], document["to"], document["amount"]) == (
        ADDRESS,
        format_address("ERC20", HOT),
        "200",
    )
    digest = evm.compute_signing_hash(unsigned)
    foreign = PrivateKey(b"\1" * 32).sign_recoverable(digest, hasher=None)
    for answer in (foreign.hex(), "0x00", "no digits", "{}", evm.join(unsigned, foreign).hex()):
        refused = bob.post(f"{url}/signed", {"signed": answer})
        assert (refused.status_code, "not the signature" in read_text(refused.text)) == (422, True)
    right = COLD_KEY.sign_recoverable(digest, hasher=None)
    # Wallets write v as 27 or 28.
    written = (right[:64] + bytes([right[64] + 27])).hex()
    bob.follow(bob.post(f"{url}/signed", {"signed": f'{{"signature": "0x{written}"}}'}))
    raw = evm.join(unsigned, right)
    assert platform.rows("select raw, tx_hash from cold_signed") == [(raw, evm.hash_of(raw))]
    assert platform.rows("select step from cold_transfer") == [("signed",)]
    assert last_entry(platform)[1] == "cold.sign"
    again = bob.follow(bob.post(f"{url}/signed", {"signed": written}))
    assert "does not wait for a signature" in read_text(again.text)


def test_a_transfer_is_given_up_and_the_inbox_shows_what_waits(
    platform: Platform, shop: Shop, people: People
) -> None:
    number = begin_cold_transfer(shop)
    bob = people.signed_in("operator")
    assert f"Cold transfer {number} on ERC20 waits to be signed elsewhere" in read_text(
        bob.page("/console/inbox?show=all")
    )
    bob.follow(bob.post(f"{COLD_PAGE}/transfers/{number}/drop"))
    assert platform.rows("select drop_asked_by from cold_transfer") == [(f"operator:{bob.name}",)]
    again = bob.follow(bob.post(f"{COLD_PAGE}/transfers/{number}/drop"))
    assert "be given up any more" in read_text(again.text)


def test_the_inbox_says_that_too_much_is_hot(platform: Platform, people: People) -> None:
    register(platform)
    platform.rows(
        "insert into cold_limit (chain, least, target, most, changed_ms, outside_ms)"
        " values ('ERC20', 1, 300000000, 500000000, 1, 5)"
    )
    page = read_text(people.signed_in("operator").page("/console/inbox?show=all"))
    assert "More is hot on ERC20 than its limit" in page
    platform.rows("update cold_limit set least = 2000000000, target = 2000000000, most = 3000000000")
