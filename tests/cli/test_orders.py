"""`withdrawals` and `fees`: an order's way past the operator, and what the platform earns."""

from tests.cli.conftest import Wallet


def open_shop(wallet: Wallet) -> int:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "USDT", "100")
    return merchant_id


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
    assert again == approved


def test_an_order_is_cancelled_and_its_amount_comes_back(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    assert wallet.balance("Shop", "merchant:USDT") == "60"
    cancelled = wallet.ask("withdrawals", "cancel", "Shop", order_id)
    assert cancelled["txnStatus"] == "4"
    assert [step["toStatus"] for step in cancelled["steps"]] == [0, 4]
    assert "cancelled by cli:" in cancelled["steps"][-1]["cause"]
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    assert wallet.ask("withdrawals", "show", "Shop", order_id) == cancelled


def test_an_order_that_is_finished_is_neither_approved_nor_cancelled(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    order_id = wallet.order(merchant_id, "40")
    wallet.run("withdrawals", "cancel", "Shop", order_id)
    for command in ("approve", "cancel"):
        assert "Refused (42202)" in wallet.refuse("withdrawals", command, "Shop", order_id)


def test_another_merchants_order_is_unknown(wallet: Wallet) -> None:
    order_id = wallet.order(open_shop(wallet), "40")
    wallet.open_merchant("Other")
    assert "has no order" in wallet.refuse("withdrawals", "show", "Other", order_id)
    assert "Refused (40401)" in wallet.refuse("withdrawals", "approve", "Other", order_id)
    assert "Refused (40401)" in wallet.refuse("withdrawals", "cancel", "Other", order_id)


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
    assert "--merchant" in wallet.refuse("withdrawals", "list", "--status", "2", status=2)


def test_fees_are_listed_and_taken_out_with_a_reason(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.credit("Shop", "KFB", "1000")
    user = wallet.register(merchant_id, "player-7")
    wallet.pay_user(merchant_id, user, "1000")
    wallet.collect(merchant_id, "player-7", "1000", fee_rate_e8=1_000_000)
    held = [line for line in wallet.ask("fees", "list")["fees"] if line["currency"] == "KFB"]
    assert [(line["held"], line["withdrawn"], line["earned"]) for line in held] == [("10", "0", "10")]

    some = wallet.ask("fees", "withdraw", "Shop", "KFB", "4", "--reason", "November")
    assert some["amount"] == "4"
    rest = wallet.ask("fees", "withdraw", "Shop", "KFB", "--reason", "November")
    assert rest["amount"] == "6"
    held = [line for line in wallet.ask("fees", "list")["fees"] if line["currency"] == "KFB"]
    assert [(line["held"], line["withdrawn"], line["earned"]) for line in held] == [("0", "10", "10")]
    assert "nothing to move" in wallet.refuse("fees", "withdraw", "Shop", "KFB", "--reason", "x")
    assert "Refused (42200)" in wallet.refuse("fees", "withdraw", "Shop", "KFB", "1", "--reason", "x")
    assert wallet.ask("book", "verify")["ok"] is True
