"""`callbacks`: what an operator sees of callbacks and decides about them."""

import pytest
from tests.cli.conftest import Wallet, in_one_cell

from merchant_wallet.book.commands import Cancel

IN_BOTH_LAYOUTS = True


def open_shop(wallet: Wallet, name: str = "Shop") -> int:
    merchant_id = wallet.open_merchant(name)
    wallet.credit(name, "USDT", "100")
    return merchant_id


def cancelled(wallet: Wallet, merchant_id: int) -> str:
    """An order that was cancelled. Returns the event of its callback."""
    order_id = wallet.order(merchant_id, "10")
    wallet.submit(merchant_id, Cancel(order_id, "test"))
    return f"evt_{order_id}_4"


def fail(wallet: Wallet, event: str) -> None:
    """Record a failed attempt, as the sender does if nobody answers."""
    wallet.tamper(
        "with parked as (update callback set state = 'dead_letter', attempt_no = 1 where event_id = %(event)s"
        " returning merchant_id, order_id, status) insert into callback_attempt"
        " select merchant_id, order_id, status, 1, 1763712000000, '127.0.0.1', 404, 'HTTP status 404',"
        " 'gone \\033[31m'::bytea, 12 from parked",
        event=event,
    )


def state(wallet: Wallet, event: str) -> str:
    return str(wallet.ask("callbacks", "show", event)["state"])


def test_what_is_not_delivered_is_listed_of_all_merchants_oldest_first(wallet: Wallet) -> None:
    shop_id, other_id = open_shop(wallet), open_shop(wallet, "Other")
    events = [cancelled(wallet, shop_id), cancelled(wallet, other_id), cancelled(wallet, shop_id)]
    fail(wallet, events[1])
    document = wallet.ask("callbacks", "list")
    assert [line["eventId"] for line in document["callbacks"]] == events
    assert (document["more"], document["pausedMerchants"]) == (False, [])
    parked = wallet.ask("callbacks", "list", "--state", "parked")["callbacks"]
    assert [(line["eventId"], line["merchantId"]) for line in parked] == [(events[1], other_id)]
    assert wallet.ask("callbacks", "list", "--limit", 2)["more"]


def test_a_callback_names_the_earlier_one_of_its_order_that_it_waits_for(wallet: Wallet) -> None:
    first = cancelled(wallet, open_shop(wallet))
    second = first.removesuffix("4") + "6"
    wallet.tamper(
        "insert into callback (merchant_id, order_id, status, event_type, event_id, created_ms)"
        " select merchant_id, order_id, 6, event_type, %(second)s, created_ms"
        " from callback where event_id = %(first)s",
        first=first,
        second=second,
    )
    listed = wallet.ask("callbacks", "list", "--merchant", "Shop")["callbacks"]
    assert [(line["eventId"], line["waitsFor"]) for line in listed] == [(second, first), (first, None)]
    fail(wallet, first)
    assert wallet.ask("callbacks", "show", second)["waitsFor"] is None


def test_a_merchants_callbacks_are_listed_page_by_page(wallet: Wallet) -> None:
    shop_id = open_shop(wallet)
    events = [cancelled(wallet, shop_id) for _ in range(3)]
    first = wallet.ask("callbacks", "list", "--merchant", "Shop", "--limit", 2)
    assert [line["eventId"] for line in first["callbacks"]] == [events[2], events[1]]
    rest = wallet.ask("callbacks", "list", "--merchant", "Shop", "--before", first["nextBefore"])
    assert [line["eventId"] for line in rest["callbacks"]] == [events[1], events[0]]
    assert wallet.ask("callbacks", "list", "--merchant", "Shop", "--state", "delivered")["callbacks"] == []


def test_a_callback_is_shown_with_every_attempt(wallet: Wallet) -> None:
    event = cancelled(wallet, open_shop(wallet))
    fail(wallet, event)
    shown = wallet.ask("callbacks", "show", event)
    assert (shown["state"], shown["txnStatus"], shown["eventType"]) == ("parked", "4", "withdrawal")
    assert shown["history"] == [
        {
            "attemptNo": 1,
            "atMs": 1763712000000,
            "address": "127.0.0.1",
            "httpStatus": 404,
            "latencyMillis": 12,
            "error": "HTTP status 404",
            "remark": None,
            "answer": "gone \x1b[31m",
        }
    ]
    printed = wallet.run("callbacks", "show", event).stdout
    assert "\n\nattemptNo   1\nat          2025-11-21 08:00:00.000Z\n" in printed
    assert "\nlatency     12 ms\nerror       HTTP status 404\nanswer      gone " in printed
    assert "\x1b" not in printed


def test_a_callback_is_sent_again_with_its_schedule_anew(wallet: Wallet) -> None:
    event = cancelled(wallet, open_shop(wallet))
    fail(wallet, event)
    wallet.tamper("update callback set retry_no = 11, next_ms = 5")
    assert wallet.ask("callbacks", "resend", event) == {"resent": 1}
    assert wallet.read("select state, retry_no, next_ms from callback") == [("due", 0, 0)]


def test_all_parked_ones_of_a_merchant_are_sent_again(wallet: Wallet) -> None:
    shop_id, other_id = open_shop(wallet), open_shop(wallet, "Other")
    mine, other = [cancelled(wallet, shop_id) for _ in range(2)], cancelled(wallet, other_id)
    for event in (*mine, other):
        fail(wallet, event)
    assert wallet.ask("callbacks", "resend", "--parked-of", "Shop") == {"resent": 2}
    assert [state(wallet, event) for event in (*mine, other)] == ["due", "due", "parked"]


def test_one_callback_is_paused_and_resumed(wallet: Wallet) -> None:
    event = cancelled(wallet, open_shop(wallet))
    wallet.run("callbacks", "pause", event)
    assert state(wallet, event) == "paused"
    assert "is not due" in wallet.refuse("callbacks", "pause", event)
    wallet.run("callbacks", "resume", event)
    assert state(wallet, event) == "due"
    assert "was not paused" in wallet.refuse("callbacks", "resume", event)


def test_a_merchant_is_paused_and_resumed_and_the_list_says_so(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.run("callbacks", "pause", "Shop")
    assert "paused before" in wallet.refuse("callbacks", "pause", "Shop")
    (pause,) = wallet.ask("callbacks", "list")["pausedMerchants"]
    assert pause["merchantId"] == merchant_id
    assert pause["pausedBy"].startswith("cli:")
    assert f"Merchant {merchant_id} is paused since" in wallet.run("callbacks", "list").stderr
    wallet.run("callbacks", "resume", "Shop")
    assert "were not paused" in wallet.refuse("callbacks", "resume", "Shop")
    assert wallet.ask("callbacks", "list")["pausedMerchants"] == []


@in_one_cell
@pytest.mark.parametrize("event", ["evt_1_2", "evt_99999999999999999_2", "evt_8589934595_7", "nonsense"])
def test_an_event_that_is_not_there_is_refused(wallet: Wallet, event: str) -> None:
    cancelled(wallet, open_shop(wallet))
    assert "There is no callback" in wallet.refuse("callbacks", "resend", event)
    sought = "callback" if event.startswith("evt_") else "order"
    assert f"There is no {sought} {event}" in wallet.refuse("callbacks", "show", event)


@in_one_cell
def test_what_can_not_be_meant_is_refused(wallet: Wallet) -> None:
    assert "--state is one of" in wallet.refuse("callbacks", "list", "--state", "lost", status=2)
    assert "name their --merchant" in wallet.refuse("callbacks", "list", "--state", "delivered", status=2)
    assert "Name either" in wallet.refuse("callbacks", "resend", status=2)
