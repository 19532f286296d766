"""Rules as accounting: balances before, a command, then its answer, its postings and the balances after.

Notation: `merchant:KFB 5; anna 100` gives accounts and their balances in coins. Accounts that are not named
are at zero, except the adjustment account, which is the other side of the given money. `anna > merchant:KFB
99.5` is a posting. `LIMIT` is the largest balance that a book can hold.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.book.ledger import OWN, START_MS, Ledger, blank_changes

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS, format_units, parse_rate, parse_units
from merchant_wallet.book.chart import ADJUSTMENT_ID_OF, FIXED, FIXED_BY_NAME
from merchant_wallet.book.commands import (
    Command,
    CreateWithdrawal,
    CreditDeposit,
    DepositKey,
    Exchange,
    MerchantToUser,
    Register,
    Submission,
    UserToMerchant,
)
from merchant_wallet.book.outcomes import Outcome, SubUserFound, Withdrawal
from merchant_wallet.book.state import Deposit, Entry

USERS = {"anna": KFB, "bert": KFB, "ulla": USDT}
"""The sub-users of every book here, and their balances. Ulla belongs to a USDT book."""


def units(coins: str) -> int:
    """The units of an amount in coins. Also `LIMIT`, and `LIMIT-1` for one coin less."""
    if coins.startswith("LIMIT"):
        return MAX_BALANCE_UNITS - parse_units(coins.removeprefix("LIMIT").removeprefix("-") or "0")
    return parse_units(coins)


def addresses(name: str) -> tuple[bytes, bytes]:
    """A sub-user's EVM and TRON address."""
    return b"E" + name.encode().rjust(19, b"."), b"T" + name.encode().rjust(19, b".")


def registration(name: str, index: int, currency: str = KFB) -> Register:
    """A sub-user's first look-up."""
    return Register(name, currency, index, *addresses(name))


def given(balances: str = "", **sub_user: Any) -> Ledger:
    """A book with three sub-users and these balances. Keywords set what Anna allows."""
    ledger = Ledger()
    for index, (name, currency) in enumerate(USERS.items()):
        found = ledger.ask(registration(name, index, currency))
        assert isinstance(found, SubUserFound)
    for part in filter(None, balances.split(";")):
        name, coins = part.split()
        account_id, currency = locate(ledger, name)
        ledger.balances[account_id] = units(coins)
        ledger.balances[ADJUSTMENT_ID_OF[currency]] -= units(coins)
    anna, _ = locate(ledger, "anna")
    ledger.sub_users[anna] = replace(ledger.sub_users[anna], **sub_user)
    return ledger


def locate(ledger: Ledger, name: str) -> tuple[int, str]:
    """The id and the currency of an account, by its name or its sub-user's."""
    if name in FIXED_BY_NAME:
        account = FIXED_BY_NAME[name]
        return account.account_id, account.currency
    (user,) = (user for user in ledger.sub_users.values() if user.ext_user_id == name)
    return user.user_id, user.currency


def show_account(ledger: Ledger, account_id: int) -> str:
    """The name of an account. A wallet has its sub-user's name."""
    names = {account.account_id: account.name for account in FIXED}
    return names.get(account_id) or ledger.sub_users[account_id].ext_user_id


def show_balances(ledger: Ledger) -> str:
    """The balances, without those at zero and the adjustment account."""
    shown = {
        show_account(ledger, account_id): format_units(balance)
        for account_id, balance in ledger.balances.items()
        if balance and account_id not in ADJUSTMENT_ID_OF.values()
    }
    return "; ".join(f"{name} {shown[name]}" for name in sorted(shown))


def sort_balances(text: str) -> str:
    """The same notation, in the order and form in which balances are shown."""
    pairs = sorted(tuple(part.split()) for part in text.split(";") if part)
    return "; ".join(f"{name} {_plain(coins)}" for name, coins in pairs if _plain(coins) != "0")


def _plain(coins: str) -> str:
    sign, rest = ("-", coins[1:]) if coins.startswith("-") else ("", coins)
    return sign + format_units(units(rest))


def show_entry(ledger: Ledger, entry: Entry) -> str:
    """An entry's kind and postings."""
    moved = [
        f"{show_account(ledger, p.source_id)} > {show_account(ledger, p.target_id)}"
        f" {format_units(p.amount_units)}"
        for p in entry.postings
    ]
    return f"{entry.kind}: {'; '.join(moved)}".strip()


def expect(
    ledger: Ledger,
    command: Command,
    outcome: Refusal | Mapping[str, Any],
    posted: str = "",
    after: str | None = None,
    now_ms: int = START_MS,
) -> Outcome:
    """Send a command, and compare some values of its answer, the new entry, and the balances.

    Without `posted` the command must make no entry. A refusal must change nothing but its nonce.
    """
    before, nonce = show_balances(ledger), f"n{len(ledger.nonces)}"
    answers, draft = ledger.judge([Submission(command, nonce)], now_ms)
    answer = answers[0]
    if isinstance(outcome, Refusal):
        assert isinstance(answer, Refusal), answer
        # Figures have tests of their own.
        assert msgspec.structs.replace(answer, figures=None) == outcome
        assert draft.changes == blank_changes(nonce)
        assert not posted
    else:
        assert not isinstance(answer, Refusal), answer
        values = msgspec.structs.asdict(answer)
        assert {name: values[name] for name in outcome} == dict(outcome)
    ledger.commit(draft)
    assert [show_entry(ledger, entry) for entry in draft.changes.entries] == ([posted] if posted else [])
    assert show_balances(ledger) == (before if after is None else sort_balances(after))
    assert set(ledger.totals().values()) == {0}
    return answer


def debit(
    order: str, name: str, coins: str, fee: str = "0", pin: bool = False, currency: str = KFB
) -> Command:
    """From a sub-user's wallet to the merchant's balance, at a fee rate."""
    return UserToMerchant(order, name, currency, units(coins), parse_rate(fee, minimum_e8=0), pin)


def credit(order: str, name: str, coins: str, currency: str = KFB) -> Command:
    """From the merchant's balance to a sub-user's wallet, by its EVM address."""
    return MerchantToUser(order, addresses(name)[0], currency, units(coins))


def swap(
    order: str | None,
    coins: str,
    send: str = USDT,
    receive: str = KFB,
    least: str | None = None,
    position: str | None = None,
) -> Command:
    """Exchange one currency for the other."""
    min_units = None if least is None else units(least)
    return Exchange(
        order, send, receive, units(coins), min_units, None if position is None else units(position)
    )


def arrived(
    ledger: Ledger, name: str, coins: str, chain: str = "ERC20", tx_hash: str = "0xa1", *, is_due: bool = True
) -> CreditDeposit:
    """A transfer to a sub-user's address, or to the merchant's own, and the command that credits it."""
    address = OWN if name == "merchant" else addresses(name)[chain == "TRC20"]
    key = DepositKey(chain, tx_hash, 0)
    ledger.deposits[key] = Deposit(key, address, units(coins), name == "merchant", is_due)
    return CreditDeposit(key, address, units(coins), False)


WITHDRAWAL = CreateWithdrawal(
    mc_order_id="w1",
    amount_units=units("100"),
    chain="ERC20",
    address="0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
    notify_url="https://shop.example/n",
    fee_rate_e8=10**6,
    fee_minimum_units=units("2"),
    approval_limit_units=units("1000"),
    daily_limit_units=None,
    allowed=True,
    deadline_after_ms=86_400_000,
)
"""100 USDT at 1 %, at least 2, approved at once."""


def withdraw(order: str = "w1", coins: str = "100", **changes: Any) -> CreateWithdrawal:
    """A withdrawal like the one above, with these changes."""
    return msgspec.structs.replace(WITHDRAWAL, mc_order_id=order, amount_units=units(coins), **changes)


def order_of(outcome: Outcome) -> Withdrawal:
    """The order in an outcome."""
    assert isinstance(outcome, Withdrawal), outcome
    return outcome
