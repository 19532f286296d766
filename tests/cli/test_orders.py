"""`withdrawals` and `fees`: an operator's decisions about orders, and the platform's earnings."""

import json
import re

import pytest
from tests.cli.conftest import ADDRESS, Wallet

from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.book.commands import Approve, Fail, TakeUp

IN_BOTH_LAYOUTS = True

FEE_FACTS = "select facts::text from entry where kind = 'fee_withdraw' order by entry_id"


def open_shop(wallet: Wallet) -> int:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "USDT", "100")
    return merchant_id


def judge_payouts(wallet: Wallet) -> bool:
    """Whether `doctor` is content with the payouts. No worker runs, so it may complain about other things."""
    document = wallet.look("doctor")
    [payouts] = [check for check in document["checks"] if check["name"] == "payouts"]
    return bool(payouts["ok"])


def test_an_order_that_waits_is_listed_and_approved(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    listed = wallet.ask("withdrawals", "list", "--status", "0")["withdrawals"]
    assert [(line["orderId"], line["amount"], line["amountArrival"]) for line in listed] == [
        (order_id, "40", "39")
    ]
    approved = wallet.ask("withdrawals", "approve", "Shop", order_id)
    assert approved["approvedBy"].startswith("cli:")
    assert approved["approvedMs"] >= approved["createdMs"]
    assert (approved["txnStatus"], approved["status"]) == ("0", "pending")
    again = wallet.ask("withdrawals", "approve", "Shop", order_id)
    assert again == {**approved, "repeated": True}


def test_an_empty_list_says_what_its_filter_leaves_out(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    wallet.ask("withdrawals", "cancel", order_id)
    for listed in (("withdrawals",), ("deposits",), ("callbacks", "--state", "parked")):
        name, *words = listed
        said = wallet.run(name, "list", *words)
        assert (said.stdout, "are listed" in said.stderr) == ("none\n", not words)
    assert "are listed" not in wallet.run("withdrawals", "list", "--merchant", "Shop").stderr
    # Nothing is said of fields without a value, and of transfers that were never signed.
    shown = wallet.run("withdrawals", "show", "Shop", order_id).stdout
    assert "cancelled" in shown
    assert not re.findall(r"^\w+  +none$", shown, re.MULTILINE)
    assert not shown.rstrip().endswith("none")


def test_an_order_to_an_address_that_looks_like_a_known_one_says_so(wallet: Wallet) -> None:
    merchant_id, alike = open_shop(wallet), f"0x742d{'0' * 32}f44e"
    assert wallet.ask("merchant", "set", "Shop", "--allow-address", alike)["lookalikes"] == []
    order_id = wallet.order(merchant_id, "40")
    [line] = wallet.ask("withdrawals", "list", "--status", "0")["withdrawals"]
    [found] = line["lookalikes"]
    assert (found["address"], found["looksLike"].lower(), found["known"]) == (ADDRESS, alike, "allowed")
    said = "Looks like 0x742d…f44e of the allow-list, but is another. The known address: 0x742d0000"
    for command in (("list",), ("show", order_id), ("approve", order_id)):
        assert said in wallet.run("withdrawals", *command).stderr
    # The first list had none to look like. A longer one has.
    other = f"0x742d{'1' * 32}f44e"
    listed = ("merchant", "set", "Shop", "--allow-address", alike, "--allow-address", other)
    assert said in wallet.run(*listed).stderr


def test_above_the_second_limit_the_first_yes_says_that_another_person_must_follow(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40", second_limit="39.99")
    said = wallet.run("withdrawals", "approve", order_id)
    assert f"Order {order_id} has 1 of 2 approvals: another person must approve it too" in said.stderr
    assert re.search(r"^approvals +1 of 2$", said.stdout, re.M)
    first = wallet.ask("withdrawals", "show", order_id)
    assert first["approvals"] == {"given": 1, "needed": 2}
    assert first["firstApprovedBy"].startswith("cli:")
    assert (first["approvedBy"], first["approvedMs"], first["txnStatus"]) == (None, None, "0")
    assert "you have approved this order already" in wallet.refuse("withdrawals", "approve", order_id)
    wallet.submit(merchant_id, Approve(order_id, "operator:bob"))
    both = wallet.ask("withdrawals", "approve", order_id)
    assert (both["approvals"], both["approvedBy"]) == ({"given": 2, "needed": 2}, "operator:bob")
    assert both["firstApprovedBy"] == first["firstApprovedBy"]


def test_an_order_is_cancelled_and_its_amount_comes_back(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    assert wallet.balance("Shop", "merchant:USDT") == "60"
    cancelled = wallet.ask("withdrawals", "cancel", "Shop", order_id)
    assert cancelled["txnStatus"] == "4"
    assert [step["toStatus"] for step in cancelled["steps"]] == [0, 4]
    assert "cancelled by cli:" in cancelled["steps"][-1]["cause"]
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    assert {**wallet.ask("withdrawals", "show", "Shop", order_id), "repeated": False} == cancelled
    assert wallet.ask("withdrawals", "cancel", order_id) == {**cancelled, "repeated": True}
    assert wallet.balance("Shop", "merchant:USDT") == "100"


def test_a_frozen_order_is_cancelled_only_when_that_is_confirmed(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    wallet.tamper(
        "insert into payout"
        " (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, frozen_cause, frozen_ms)"
        f" values ({merchant_id}, {order_id}, 'TRC20', 1, 'acceptance', 0, 'it may have been paid', 1)"
    )
    wallet.tamper(f"update withdrawal set frozen_ms = 1 where order_id = {order_id}")
    assert "this order is frozen; it may have been paid" in wallet.refuse("withdrawals", "cancel", order_id)
    (listed,) = wallet.ask("withdrawals", "list")["withdrawals"]
    assert (listed["txnStatus"], listed["waitsFor"]) == ("0", "frozen: it may have been paid")
    assert wallet.ask("withdrawals", "cancel", order_id, "--even-frozen")["txnStatus"] == "4"
    (ended,) = wallet.ask("withdrawals", "list", "--merchant", "Shop")["withdrawals"]
    assert (ended["status"], ended["waitsFor"]) == ("cancelled", None)
    assert wallet.balance("Shop", "merchant:USDT") == "100"


def test_an_order_that_is_finished_is_not_approved_and_stays_as_it_is(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    wallet.run("withdrawals", "cancel", "Shop", order_id)
    for command in ("approve", "refund"):
        said = wallet.refuse("withdrawals", command, "Shop", order_id)
        assert said.startswith("Refused (42202): orderId: an order that is cancelled can't be ")
    said = wallet.run("withdrawals", "cancel", "Shop", order_id).stderr
    assert said == f"Order {order_id} was cancelled before: nothing was changed this time.\n"
    shown = wallet.run("withdrawals", "show", order_id).stdout
    assert re.search(r"^1 +pending +cancelled ", shown, re.M)
    assert "none" not in shown.partition("\n\n")[0]
    assert "attemptNo" not in shown
    listed = wallet.run("withdrawals", "list", "--status", "cancelled").stdout.splitlines()
    assert listed[0].split() == [
        *("merchantId", "orderId", "mcOrderId", "amount", "currency", "fee"),
        *("chainType", "address", "status", "approvals", "waitsFor", "created"),
    ]


def test_an_order_id_names_its_book_by_itself(wallet: Wallet) -> None:
    shop_id, other_id = open_shop(wallet), wallet.open_merchant("Other")
    wallet.credit("Other", "USDT", "100")
    orders = {merchant_id: wallet.order(merchant_id, "40") for merchant_id in (shop_id, other_id)}
    for merchant_id, order_id in orders.items():
        shown = wallet.ask("withdrawals", "show", order_id)
        assert (shown["merchantId"], shown["orderId"]) == (merchant_id, order_id)
        assert shown == wallet.ask("withdrawals", "show", merchant_id, order_id)
    assert wallet.ask("withdrawals", "approve", orders[other_id])["approvedBy"].startswith("cli:")
    assert wallet.ask("withdrawals", "cancel", orders[shop_id])["txnStatus"] == "4"
    assert wallet.ask("withdrawals", "show", orders[other_id])["txnStatus"] == "0"


def test_an_id_that_no_book_gave_out_is_unknown(wallet: Wallet) -> None:
    order_id = wallet.order(open_shop(wallet), "40")
    assert f"There is no order {order_id + 1000}" in wallet.refuse("withdrawals", "show", order_id + 1000)
    assert "There is no order 7" in wallet.refuse("withdrawals", "show", 7)
    assert "There is no order" in wallet.refuse("withdrawals", "cancel", MAX_ID)


@pytest.mark.parametrize("names", [("Shop",), ("0",), (str(MAX_ID + 1),), ("a", "b", "7"), ("7", "Shop")])
def test_an_order_that_is_not_named_is_a_mistake_in_typing(wallet: Wallet, names: tuple[str, ...]) -> None:
    for command in ("approve", "show"):
        wallet.refuse("withdrawals", command, *names, status=2 if len(names) > 2 else 1)


def test_a_refund_that_was_kept_back_is_given(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40", approval_limit="100")
    assert "can't be refunded." in wallet.refuse("withdrawals", "refund", order_id)
    wallet.submit(merchant_id, TakeUp(order_id))
    wallet.submit(merchant_id, Fail(order_id, "no such address"))
    assert wallet.balance("Shop", "merchant:USDT") == "60"
    refunded = wallet.ask("withdrawals", "refund", order_id)
    assert (refunded["txnStatus"], refunded["status"]) == ("6", "refunded")
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    assert wallet.ask("withdrawals", "refund", "Shop", order_id) == {**refunded, "repeated": True}
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    assert {**wallet.ask("withdrawals", "show", order_id), "repeated": False} == refunded
    assert wallet.ask("book", "verify")["ok"] is True


def test_a_frozen_order_is_thawed_once(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "10")
    assert "was not frozen" in wallet.refuse("withdrawals", "resume", order_id)
    wallet.tamper(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " frozen_cause, frozen_ms) values (%(merchant)s, %(order)s, 'ERC20', 1, 'w', 0, 'x', 1)",
        merchant=merchant_id,
        order=order_id,
    )
    assert "its payout is frozen, the book may" in wallet.run("book", "verify", "--json", status=1).stdout
    wallet.tamper(f"update withdrawal set frozen_ms = 1 where order_id = {order_id}")
    assert wallet.ask("book", "verify")["ok"] is True
    assert not judge_payouts(wallet)
    thawed = wallet.run("withdrawals", "resume", order_id)
    assert "is resumed" in thawed.stderr
    [resumption] = wallet.ask("withdrawals", "show", order_id)["resumptions"]
    assert (resumption["frozenMs"], resumption["cause"], resumption["resumedMs"] > 1) == (1, "x", True)
    assert resumption["resumedBy"] in thawed.stdout
    assert judge_payouts(wallet)
    assert wallet.ask("withdrawals", "cancel", order_id)["txnStatus"] == "4"
    assert wallet.refuse_document("withdrawals", "resume", "Shop", order_id)["code"] is None
    assert "is no order" in wallet.refuse("withdrawals", "resume", "Shop", order_id + 1)


def test_another_merchants_order_is_unknown(wallet: Wallet) -> None:
    order_id = wallet.order(open_shop(wallet), "40")
    wallet.open_merchant("Other")
    assert f"There is no order {order_id}" in wallet.refuse("withdrawals", "show", "Other", order_id)
    assert wallet.refuse_document("withdrawals", "approve", "Other", order_id)["code"] == 40401
    assert wallet.refuse_document("withdrawals", "cancel", "Other", order_id)["code"] == 40401


def test_a_merchants_orders_are_listed_newest_first_page_by_page(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    orders = [wallet.order(merchant_id, "2") for _ in range(3)]
    first = wallet.ask("withdrawals", "list", "--merchant", "Shop", "--limit", "2")
    assert [line["orderId"] for line in first["withdrawals"]] == orders[:0:-1]
    assert first["more"] is True
    page = ("withdrawals", "list", "--merchant", "Shop", "--before", first["nextBefore"])
    rest = wallet.ask(*page)
    assert [line["orderId"] for line in rest["withdrawals"]] == orders[:1]
    assert (rest["more"], rest["nextBefore"]) == (False, None)


def test_orders_of_all_merchants_are_listed_oldest_first(wallet: Wallet) -> None:
    first = wallet.order(open_shop(wallet), "2")
    other_id = wallet.open_merchant("Other")
    wallet.credit("Other", "USDT", "100")
    second = wallet.order(other_id, "2")
    listed = wallet.ask("withdrawals", "list")["withdrawals"]
    assert [line["orderId"] for line in listed] == [first, second]
    assert "There are more" in wallet.run("withdrawals", "list", "--limit", "1").stderr
    assert wallet.ask("withdrawals", "list", "--status", "2")["withdrawals"] == []


def test_fees_are_listed_and_taken_out_with_a_reason(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.credit("Shop", "KFB", "1000")
    user = wallet.register(merchant_id, "player-7")
    wallet.pay_user(merchant_id, user, "1000")
    wallet.collect(merchant_id, "player-7", "1000", fee_rate_e8=1_000_000)
    held = [line for line in wallet.ask("fees", "list")["fees"] if line["currency"] == "KFB"]
    assert [(line["held"], line["withdrawn"], line["earned"]) for line in held] == [("10", "0", "10")]

    november = ("fees", "withdraw", "Shop", "KFB", "4", "--reason", "November", "--ref", "2025-11")
    some = wallet.ask(*november)
    assert (some["amount"], some["held"], some["ref"], some["repeated"]) == ("4", "6", "2025-11", False)
    assert wallet.ask(*november) == {**some, "repeated": True}
    assert "nothing was moved this time" in wallet.run(*november).stderr
    assert "Refused (40900)" in wallet.refuse("fees", "withdraw", "Shop", "KFB", "--ref", "2025-11")
    rest = wallet.run("fees", "withdraw", "Shop", "KFB")
    assert re.search(r"^amount +6$", rest.stdout, re.M)
    assert rest.stderr == 'No --reason was given: the journal has "platform fees withdrawn".\n'
    held = [line for line in wallet.ask("fees", "list")["fees"] if line["currency"] == "KFB"]
    assert [(line["held"], line["withdrawn"], line["earned"]) for line in held] == [("0", "10", "10")]
    assert "nothing to move" in wallet.refuse("fees", "withdraw", "Shop", "KFB", "--reason", "x")
    assert "Refused (42200)" in wallet.refuse("fees", "withdraw", "Shop", "KFB", "1", "--reason", "x")
    reasons = [json.loads(facts)["reason"] for (facts,) in wallet.read(FEE_FACTS)]
    assert reasons == ["November", "platform fees withdrawn"]
    assert wallet.ask("book", "verify")["ok"] is True


def test_a_chain_is_frozen_by_an_operator_and_thawed(wallet: Wallet) -> None:
    open_shop(wallet)
    assert "neither frozen nor stopped" in wallet.run("wallets", "resume", "ERC20").stderr
    frozen = wallet.ask("wallets", "stop", "ERC20", "--reason", "a look at the books")
    assert [(stop["chainType"], stop["cause"]) for stop in frozen["stops"]] == [
        ("ERC20", "a look at the books")
    ]
    again = wallet.ask("wallets", "stop", "ERC20", "--reason", "again")
    assert again == {**frozen, "repeated": True}
    assert "ERC20 pays nothing" in wallet.run("doctor", status=1).stdout
    assert "a look at the books" in wallet.run("wallets", "list").stdout
    assert wallet.ask("wallets", "resume", "ERC20")["stops"] == []
    assert judge_payouts(wallet)


def test_a_hot_wallet_that_froze_itself_is_listed_with_what_waits_for_it_and_thawed(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "10")
    wallet.tamper(
        "insert into hot_wallet (chain, address, frozen_cause, frozen_ms, funds, funds_ended_payouts,"
        " checked_ms)"
        " values ('TRC20', %(address)s, 'a stranger', 5, 12500000, 0, 4)",
        address=bytes(20),
    )
    wallet.tamper(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " obstacle_kind, obstacle_cause, obstacle_ms)"
        " values (%(merchant)s, %(order)s, 'TRC20', 1, 'w', 0, 'funds', 'too little', 7)",
        merchant=merchant_id,
        order=order_id,
    )
    listed = wallet.ask("wallets", "list")
    [shown], [waiting] = listed["wallets"], listed["waiting"]
    assert (shown["funds"], shown["promised"], shown["frozenCause"]) == ("12.5", "0", "a stranger")
    assert (waiting["orderId"], waiting["obstacle"], waiting["sinceMs"]) == (order_id, "funds", 7)
    order = wallet.ask("withdrawals", "show", order_id)
    assert (order["obstacleCause"], order["attempts"]) == ("too little", [])
    assert "a stranger" in wallet.run("wallets", "list").stdout
    [thawed] = wallet.ask("wallets", "resume", "TRC20")["wallets"]
    assert (thawed["frozenCause"], thawed["funds"]) == (None, None)
