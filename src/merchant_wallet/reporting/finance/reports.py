"""The report of a period: opening balance, movements and closing balance of each kind of account.

Rules:
- `find_problem` checks a report's own arithmetic: opening + in - out = closing, and all accounts of a
  currency add up to zero, at the beginning and at the end.
- A document has the same text for the same figures, so its digest can be compared.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.money import format_units
from merchant_wallet.book.chart import FIXED, SUBUSER
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.finance.movements import (
    Account,
    Balances,
    Lag,
    Moved,
    read_balances_before,
    read_lag,
    read_moved,
)
from merchant_wallet.reporting.finance.periods import Period

_ORDER: Final = {SUBUSER: 1} | {
    account.kind: place for place, account in enumerate(FIXED) if account.kind != "merchant"
}


class AccountReport(msgspec.Struct, frozen=True):
    """One kind of account in one currency: what it had, what moved by kind of entry, and what it has."""

    account: str
    currency: str
    opening_units: int
    moved: tuple[Moved, ...]
    closing_units: int

    @property
    def in_units(self) -> int:
        """All that came."""
        return sum([one.in_units for one in self.moved])

    @property
    def out_units(self) -> int:
        """All that left."""
        return sum([one.out_units for one in self.moved])


class Report(msgspec.Struct, frozen=True):
    """A period's report, of one book or of all. `lag` says what is missing; None: it is complete for good."""

    period: Period
    merchant_id: int | None
    accounts: tuple[AccountReport, ...]
    lag: Lag | None = None

    def find(self, account: str, currency: str) -> AccountReport:
        """One kind of account; without movements and balance if it had none."""
        for one in self.accounts:
            if (one.account, one.currency) == (account, currency):
                return one
        return AccountReport(account, currency, 0, (), 0)


async def read_report(cells: Reach, period: Period, merchant_id: int | None = None) -> Report:
    """The report of a period as the movements give it now."""
    lag = await read_lag(cells, merchant_id)
    opening = await read_balances_before(cells, period.since_day, merchant_id)
    moved = await read_moved(cells, period, merchant_id)
    return Report(period, merchant_id, make_accounts(opening, moved), lag)


def make_accounts(opening: Balances, moved: Sequence[Moved]) -> tuple[AccountReport, ...]:
    """The report of each account that has a balance or a movement. Pure."""
    by_account: dict[Account, list[Moved]] = {}
    for one in moved:
        by_account.setdefault((one.account, one.currency), []).append(one)
    closing = Counter(opening)
    for one in moved:
        closing[one.account, one.currency] += one.in_units - one.out_units
    keys = {key for key, units in opening.items() if units} | set(by_account)
    return tuple(
        [
            AccountReport(*key, opening[key], tuple(by_account.get(key, [])), closing[key])
            for key in sorted(keys, key=_rank)
        ]
    )


def _rank(key: Account) -> tuple[int, int, str]:
    account, currency = key
    return CURRENCIES.index(currency), _ORDER.get(account, 0), account


def find_problem(accounts: Sequence[AccountReport]) -> str | None:
    """What does not add up. Pure."""
    for one in accounts:
        if one.opening_units + one.in_units - one.out_units != one.closing_units:
            return f"{one.account}:{one.currency} does not close as it opened and moved"
    for currency in CURRENCIES:
        of = [one for one in accounts if one.currency == currency]
        for word, units in (
            ("opening", sum([one.opening_units for one in of])),
            ("closing", sum([one.closing_units for one in of])),
        ):
            if units:
                return f"the {word} balances of {currency} add up to {format_units(units)}, not to 0"
    return None


class Change(NamedTuple):
    """An account whose figures differ between two reports of the same period."""

    before: AccountReport
    after: AccountReport


def list_changes(before: Sequence[AccountReport], after: Sequence[AccountReport]) -> list[Change]:
    """The accounts that differ between two reports of the same period. Pure."""
    sides = [{(one.account, one.currency): one for one in report} for report in (before, after)]
    found = []
    for key in sorted(sides[0].keys() | sides[1].keys(), key=_rank):
        change = Change(*[side.get(key, AccountReport(*key, 0, (), 0)) for side in sides])
        if change.before != change.after:
            found.append(change)
    return found


def describe_accounts(accounts: Sequence[AccountReport]) -> list[dict[str, Any]]:
    """The accounts as a document. Pure."""
    return [
        {
            "account": one.account,
            "currency": one.currency,
            "opening": format_units(one.opening_units),
            "movements": [
                {
                    "kind": moved.kind,
                    "in": format_units(moved.in_units),
                    "out": format_units(moved.out_units),
                    "postings": moved.postings,
                }
                for moved in one.moved
            ],
            "closing": format_units(one.closing_units),
        }
        for one in accounts
    ]


def encode_accounts(accounts: Sequence[AccountReport]) -> str:
    """The document as the text whose digest is kept. Pure."""
    return msgspec.json.encode(describe_accounts(accounts)).decode()


def decode_accounts(text: str) -> tuple[AccountReport, ...]:
    """The accounts of a stored text. Pure."""
    return tuple([_read_account(one) for one in msgspec.json.decode(text)])


def _read_account(one: Mapping[str, Any]) -> AccountReport:
    account, currency = one["account"], one["currency"]
    moved = [
        Moved(
            account,
            currency,
            each["kind"],
            parse_signed(each["in"]),
            parse_signed(each["out"]),
            each["postings"],
        )
        for each in one["movements"]
    ]
    return AccountReport(
        account, currency, parse_signed(one["opening"]), tuple(moved), parse_signed(one["closing"])
    )


def parse_signed(text: str) -> int:
    """The units of a decimal in a document, which may be negative. Pure."""
    whole, _, fraction = text.removeprefix("-").partition(".")
    units = int(whole + fraction.ljust(6, "0"))
    return -units if text.startswith("-") else units


def make_digest(text: str) -> bytes:
    """The SHA-256 of a document. Pure."""
    return hashlib.sha256(text.encode()).digest()
