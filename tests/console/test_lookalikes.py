"""Addresses that look like known ones: who decides about them is told, wherever the decision is made."""

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_cold import COLD_PAGE, hot_wallet
from tests.console.test_withdrawals import QUEUE, Till, till
from tests.console.two_people import WHY, proposal_of, set_
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.lookalikes import show_ends
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.console import inbox_cache

__all__ = ["hot_wallet", "till"]

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000
INBOX = "/console/inbox?show=all"
PAID = "0x52908400098527886E0F7030069857D2E4169EE7"
ALIKE = "0x5290" + "0" * 32 + "9ee7"
ALLOWED = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
ALIKE_OF_ALLOWED = "0x8617" + "0" * 32 + "070d"
OTHER_ENDS = "0x5290" + "0" * 32 + "9ee8"


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_cache, "KEPT_S", 0.0)
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def pay(till: Till, times: int) -> None:
    for number in range(times):
        till.pay(till.order("60", address=PAID), f"0x{number:064x}")


def make_alike(raw: bytes) -> bytes:
    """Other 20 bytes whose EVM form begins and ends as that of these."""
    return raw[:2] + bytes(byte ^ 1 for byte in raw[2:-2]) + raw[-2:]


def test_an_order_to_a_look_alike_of_a_paid_address_is_marked_wherever_it_is_approved(
    till: Till, people: People
) -> None:
    pay(till, 3)
    marked, same, other = (till.order("60", address=each) for each in (ALIKE, PAID, OTHER_ENDS))
    operator = people.signed_in("operator")
    said = "Looks like 0x5290…9ee7, paid 3 times, but is another"
    page = read_text(operator.page(f"{QUEUE}/{marked}"))
    assert said in page
    # Both addresses can be compared as a whole.
    assert ALIKE in page
    assert PAID in page
    for order in (same, other):
        assert "Looks like" not in read_text(operator.page(f"{QUEUE}/{order}"))
    queue = read_text(operator.page(f"{QUEUE}?merchant={till.shop.merchant_id}"))
    assert queue.count("Looks like") == 1
    assert said in queue
    inbox = read_text(operator.page(INBOX))
    assert inbox.count("Its address looks like another one: 0x5290…9ee7") == 1
    # Its own people see it too.
    assert said in read_text(people.signed_in("merchant", till.shop.merchant_id).page(f"{QUEUE}/{marked}"))
    operator.http.headers["accept-language"] = "zh-CN"
    assert "与 0x5290…9ee7（已付款 3 次）相似，但不是同一地址" in read_text(
        operator.page(f"{QUEUE}/{marked}")
    )


def test_what_another_merchant_has_paid_is_not_known_to_this_one(till: Till, people: People) -> None:
    pay(till, 1)
    other = till.platform.open_merchant(approval_limit="0", withdraw_fee_min="1", withdraw_fee_rate="0")
    other.fund("USDT", "100")
    order = Till(till.platform, other).order("60", address=ALIKE)
    assert "Looks like" not in read_text(people.signed_in("operator").page(f"{QUEUE}/{order}"))


def test_a_look_alike_of_our_own_address_is_marked_for_those_who_may_know_it(
    till: Till, people: People
) -> None:
    till.shop.user("player-7")
    [(evm, tron)] = till.platform.rows(
        "select evm_address, tron_address from sub_user where merchant_id = %s", till.shop.merchant_id
    )
    alike = make_alike(bytes(evm))
    order = till.order("60", address=to_eip55(alike))
    said = f"Looks like {show_ends(to_eip55(alike))}, an address of ours, but is another"
    assert said in read_text(people.signed_in("operator").page(f"{QUEUE}/{order}"))
    assert said in read_text(people.signed_in("merchant", till.shop.merchant_id).page(f"{QUEUE}/{order}"))
    other = till.platform.open_merchant(approval_limit="0", withdraw_fee_min="1", withdraw_fee_rate="0")
    other.fund("USDT", "100")
    foreign = Till(till.platform, other).order("60", address=to_eip55(alike))
    assert said in read_text(people.signed_in("operator").page(f"{QUEUE}/{foreign}"))
    own = people.signed_in("merchant", other.merchant_id)
    assert "Looks like" not in read_text(own.page(f"{QUEUE}/{foreign}"))
    same = till.order("60", "TRC20", address=to_tron(bytes(tron)))
    assert "Looks like" not in read_text(people.signed_in("operator").page(f"{QUEUE}/{same}"))


def test_proposals_that_add_a_look_alike_say_so(till: Till, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    pay(till, 2)
    till.shop.user("player-8")
    set_(ann, till.shop, allowed_addresses=f"{PAID} {ALLOWED}")
    wanted = f"{PAID} {ALLOWED} {ALIKE} {ALIKE_OF_ALLOWED} {OTHER_ENDS}"
    url = proposal_of(set_(ann, till.shop, allowed_addresses=wanted, reason=WHY))
    page = read_text(bob.page(url))
    assert "Looks like 0x5290…9ee7, paid 2 times, but is another" in page
    assert "Looks like 0x8617…070d of the allow-list, but is another" in page
    assert page.count("Looks like") == 2
    said = f"{ann.name} proposes an address that looks like another one: 0x"
    assert read_text(bob.page(INBOX)).count(said) == 1
    [(evm,)] = till.platform.rows(
        "select evm_address from sub_user where merchant_id = %s", till.shop.merchant_id
    )
    cold = to_eip55(make_alike(bytes(evm)))
    url = proposal_of(ann.post(f"{COLD_PAGE}/ERC20/wallet", {"address": cold, "reason": WHY}))
    assert f"Looks like {show_ends(cold)}, an address of ours, but is another" in read_text(bob.page(url))


def test_a_first_allow_list_with_a_look_alike_says_so(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    pay(till, 1)
    said = read_text(ann.follow(set_(ann, till.shop, allowed_addresses=f"{ALIKE} {OTHER_ENDS}")).text)
    assert said.count("looks like the known address") == 1
    assert f"looks like the known address {PAID}, but is another" in said
