"""What a typed text names: `find`, and `show` with whatever id is at hand."""

from tests.cli.conftest import ADDRESS, Wallet

from merchant_wallet.book.commands import Approve, Settle, TakeUp
from merchant_wallet.cli.failures import STATUS_WORDS
from merchant_wallet.cli.inbox import COMMANDS
from merchant_wallet.web.inbox_sources import BY_KIND
from merchant_wallet.web.kinds import ORDER_STATUSES

HASH = "0x" + "5f" * 32


def pay(wallet: Wallet, shop: int, order: int) -> None:
    for command in (Approve(order, "cli:ann"), TakeUp(order), Settle(order, HASH)):
        wallet.submit(shop, command)


def test_an_order_is_shown_by_every_id_and_is_found_like_in_the_console(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "1000")
    wallet.orders = 70_000
    order, waits = wallet.order(shop, "100"), wallet.order(shop, "30")
    pay(wallet, shop, order)
    event = f"evt_{order}_2"
    for name in ([order], ["70001"], ["Shop", "70001"], [event]):
        assert wallet.ask("withdrawals", "show", *name)["orderId"] == order, name
    assert (
        wallet.run("withdrawals", "show", "70001").stderr == f"70001 is order {order} of merchant {shop}.\n"
    )
    assert wallet.run("withdrawals", "show", order).stderr == ""
    shown = wallet.run("callbacks", "show", order)
    assert shown.stderr == "", "it says nothing of an id that is that of the order"
    assert "txnStatus   2 (paid)\n" in shown.stdout
    assert wallet.ask("callbacks", "show", "70001")["eventId"] == event
    assert wallet.refuse("callbacks", "show", "70002").endswith(f"Order {waits} has no callback yet.")
    found = wallet.ask("find", "70001")["found"]
    assert [(one["kind"], one["key"], one["command"]) for one in found] == [
        ("order", str(order), f"merchant-wallet withdrawals show {order}")
    ]
    to_address = [one for one in wallet.ask("find", ADDRESS)["found"] if one["kind"] == "address"]
    assert [one["command"] for one in to_address] == [f"merchant-wallet withdrawals list --address {ADDRESS}"]
    assert wallet.refuse("deposits", "show", "70001") == (
        f"70001 is no deposit. It could mean order {order} of merchant {shop}:"
        f" `merchant-wallet withdrawals show {order}`."
    )
    assert wallet.refuse("withdrawals", "show", "nothing") == (
        "There is no order nothing, and nothing else has that id, number, hash, address or name."
    )
    other = wallet.open_merchant("Stall")
    wallet.credit("Stall", "USDT", "1000")
    wallet.orders = 70_000
    twin = wallet.order(other, "5")
    both = wallet.refuse("withdrawals", "show", "70001")
    assert f"order {order} of merchant {shop}" in both
    assert f"order {twin} of merchant {other}" in both
    assert wallet.ask("withdrawals", "show", other, "70001")["orderId"] == twin


def test_an_order_is_decided_by_every_id_that_shows_it(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "1000")
    wallet.orders = 70_000
    order, other = wallet.order(shop, "100"), wallet.order(shop, "30")
    done = wallet.run("withdrawals", "approve", "70001")
    assert f"70001 is order {order} of merchant {shop}.\n" in done.stderr
    assert wallet.ask("withdrawals", "show", order)["approvedBy"].startswith("cli:")
    why = ("--reason", "entered twice")
    assert wallet.ask("withdrawals", "cancel", "Shop", "70002", *why)["orderId"] == other
    log = [
        one for one in wallet.ask("audit", "list")["entries"] if one["action"] == "withdrawal.cancel.asked"
    ]
    assert [one["after"]["reason"] for one in log] == ["entered twice"]


def test_printed_commands_are_for_the_same_data_folder(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "1000")
    order, data = wallet.order(shop, "40"), ("--data", wallet.folder)
    typed = f"--data '{wallet.folder}'"
    found = wallet.ask("find", order, *data)["found"]
    assert f"merchant-wallet withdrawals show {order} {typed}" in [one["command"] for one in found]
    (item,) = [one for one in wallet.ask("inbox", *data)["items"] if one["kind"] == "approval"]
    assert (item["amount"], item["currency"]) == ("40", "USDT")
    assert item["command"] == f"merchant-wallet withdrawals approve {order} {typed}"
    assert "40 USDT" in wallet.run("inbox").stdout


def test_the_inbox_names_commands_of_kinds_and_values_that_exist(wallet: Wallet) -> None:
    assert set(COMMANDS) <= set(BY_KIND)
    for command in COMMANDS.values():
        words = [word for word in command.split() if word[0] not in "{-"]
        assert "--help" in wallet.run(*words, "--help").stdout


def test_orders_are_listed_by_every_status_as_word_and_number_and_by_the_consoles_filters(
    wallet: Wallet,
) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "1000")
    paid, waits = wallet.order(shop, "100"), wallet.order(shop, "30")
    pay(wallet, shop, paid)

    def listed(*options: object) -> list[int]:
        return [one["orderId"] for one in wallet.ask("withdrawals", "list", *options)["withdrawals"]]

    assert listed() == listed("--status", "pending") == listed("--status", "0") == [waits]
    assert listed("--status", "paid") == listed("--status", "2") == [paid]
    assert listed("--merchant", "Shop", "--status", "Paid") == [paid]
    assert listed("--address", ADDRESS) == listed("--at-least", "30") == [waits, paid]
    assert listed("--at-least", "31") == listed("--at-least", "31", "--chain", "ERC20") == [paid]
    assert listed("--from", "2020-01-01", "--to", "2020-01-31") == listed("--chain", "TRC20") == []
    first = wallet.ask("withdrawals", "list", "--address", ADDRESS, "--limit", "1")
    assert (first["more"], first["nextBefore"], len(first["withdrawals"])) == (True, None, 1)
    assert wallet.ask("callbacks", "list", "--status", "parked") == wallet.ask(
        "callbacks", "list", "--state", "parked"
    )
    assert wallet.ask("screening", "list", "--status", "held")["screenings"] == []
    assert "pending, processing, paid" in wallet.refuse("withdrawals", "list", "--status", "done", status=2)
    wrong = wallet.refuse("withdrawals", "list", "--at-least", "5k")
    assert wrong == "--at-least: '5k' is not a plain decimal number such as 12.5."
    assert "--address: " in wallet.refuse("withdrawals", "list", "--address", "xyz", status=2)
    assert "--from and --to are days such as 2026-10-05, not '2020-13-01'." in wallet.refuse(
        "withdrawals", "list", "--from", "2020-13-01", status=2
    )


def test_the_words_of_statuses_are_those_of_the_pages() -> None:
    assert [word.lower() for word in ORDER_STATUSES.values()] == list(STATUS_WORDS)


def test_a_second_merchant_of_one_name_is_warned_of_and_the_name_alone_is_refused(wallet: Wallet) -> None:
    first = wallet.open_merchant("Shop")
    made = wallet.run("merchant", "create", "Shop")
    assert f"Other merchants have the name Shop, too: {first}." in made.stderr
    told = wallet.refuse("merchant", "show", "Shop")
    assert str(first) in told
    assert "give one of their ids" in told
    assert wallet.ask("merchant", "list", "--status", "suspended")["merchants"] == []
