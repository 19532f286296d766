"""`sub-users`: find them, change their controls, reset a PIN."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.cli.conftest import Wallet, in_one_cell
from tests.sub_users.books import HERE

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import UserToMerchant
from merchant_wallet.book.outcomes import DEBIT_LIMIT, DEBITS_PAUSED, PIN_REQUIRED, Outcome, Transferred
from merchant_wallet.sub_users.controls import Connection
from merchant_wallet.sub_users.pins import PinLocked, PinWrong, check, set_first

IN_BOTH_LAYOUTS = True

Result = TypeVar("Result")


def on_database(wallet: Wallet, ask: Callable[[Connection], Coroutine[Any, Any, Result]]) -> Result:
    """Run a query on a connection of its own, as the wallet page does."""

    async def run() -> Result:
        async with await connect(wallet.both_url) as conn:
            return await ask(conn)

    return asyncio.run(run())


def open_shop(wallet: Wallet) -> int:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "KFB", "100")
    return merchant_id


def test_a_sub_user_is_shown_with_both_addresses(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    user = wallet.register(merchant_id, "player-7")
    wallet.pay_user(merchant_id, user, "12.5")
    wallet.collect(merchant_id, "player-7", "2")
    shown = wallet.ask("sub-users", "show", "Shop", "player-7")
    assert shown["userId"] == user.user_id
    assert (shown["balance"], shown["debitedToday"], shown["currency"]) == ("10.5", "2", "KFB")
    assert shown["address"] == to_eip55(user.evm_address)
    assert shown["tronAddress"] == to_tron(user.tron_address)
    assert "no sub-user" in wallet.refuse("sub-users", "show", "Shop", "player-8")


def test_a_pause_and_a_limit_hold_from_the_next_debit_on(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.pay_user(merchant_id, wallet.register(merchant_id, "player-7"), "50")
    set_player = ("sub-users", "set", "Shop", "player-7")
    assert wallet.ask(*set_player, "--pause")["paused"] is True
    assert wallet.collect(merchant_id, "player-7", "1") == DEBITS_PAUSED
    limited = wallet.ask(*set_player, "--resume", "--limit-debit", "5", "--limit-day", "20")
    assert (limited["paused"], limited["limitDebit"], limited["limitDay"]) == (False, "5", "20")
    assert wallet.collect(merchant_id, "player-7", "6") == DEBIT_LIMIT
    freed = wallet.ask(*set_player, "--limit-debit", "none")
    assert (freed["limitDebit"], freed["limitDay"]) == (None, "20")
    assert isinstance(wallet.collect(merchant_id, "player-7", "6"), Transferred)


@in_one_cell
def test_a_change_of_nothing_or_to_nonsense_is_refused(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.register(merchant_id, "player-7")
    set_player = ("sub-users", "set", "Shop", "player-7")
    assert "Nothing to change" in wallet.refuse(*set_player, status=2)
    assert "--limit-day" in wallet.refuse(*set_player, "--limit-day", "much")


def test_a_sub_user_without_a_pin_any_more_is_not_debited_where_one_is_needed(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    user = wallet.register(merchant_id, "player-7")
    wallet.pay_user(merchant_id, user, "50")
    before_ms = now_ms()

    def debit(order: str) -> Outcome:
        return wallet.submit(merchant_id, UserToMerchant(order, "player-7", "KFB", 10**6, 0, True))

    assert debit("d1") == PIN_REQUIRED
    shown = wallet.ask("sub-users", "show", "Shop", "player-7")
    assert (shown["hasPin"], shown["pinSetMs"], shown["pinLockedUntilMs"]) == (False, None, None)
    on_database(
        wallet, lambda conn: set_first(conn, merchant_id, user.user_id, "194728", before_ms, source=HERE)
    )
    shown = wallet.ask("sub-users", "show", "Shop", "player-7")
    assert (shown["hasPin"], shown["pinSetMs"], shown["pinLockedUntilMs"]) == (True, before_ms, None)
    assert isinstance(debit("d1"), Transferred)
    (own,) = wallet.ask("audit", "list", "--actor", "sub-user:player-7")["entries"]
    assert (own["action"], own["source"], own["after"]) == ("sub_user.set_pin", HERE, {"hasPin": True})
    reset = wallet.ask("sub-users", "reset-pin", "Shop", "player-7")
    assert reset == {"userId": user.user_id, "extUserId": "player-7", "hadPin": True}
    assert debit("d2") == PIN_REQUIRED
    assert wallet.ask("sub-users", "reset-pin", "Shop", "player-7")["hadPin"] is False
    assert "no sub-user" in wallet.refuse("sub-users", "reset-pin", "Shop", "player-8")


def test_a_locked_pin_is_shown_until_it_is_reset(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    user_id = wallet.register(merchant_id, "player-7").user_id
    at_ms = now_ms()

    async def guess_until_locked(conn: Connection) -> int:
        await set_first(conn, merchant_id, user_id, "194728", at_ms, source=HERE)
        while True:
            try:
                await check(conn, merchant_id, user_id, "830164", at_ms + DAY_MS)
            except PinWrong:
                continue
            except PinLocked as locked:
                return locked.until_ms

    until_ms = on_database(wallet, guess_until_locked)
    assert wallet.ask("sub-users", "show", "Shop", "player-7")["pinLockedUntilMs"] == until_ms
    wallet.ask("sub-users", "reset-pin", "Shop", "player-7")
    assert wallet.ask("sub-users", "show", "Shop", "player-7")["pinLockedUntilMs"] is None


def test_sub_users_are_listed_page_by_page_and_found(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    users = [wallet.register(merchant_id, f"player-{number}") for number in range(3)]
    first = wallet.ask("sub-users", "list", "Shop", "--limit", "2")
    assert [line["extUserId"] for line in first["subUsers"]] == ["player-0", "player-1"]
    rest = wallet.ask("sub-users", "list", "Shop", "--after", first["nextAfter"])
    assert [line["extUserId"] for line in rest["subUsers"]] == ["player-2"]
    assert rest["nextAfter"] is None
    for text in ("player-1", users[1].user_id, to_tron(users[1].tron_address)):
        found = wallet.ask("sub-users", "list", "Shop", "--search", text)["subUsers"]
        assert [line["userId"] for line in found] == [users[1].user_id]
