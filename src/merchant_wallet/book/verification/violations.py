"""Violations: what verification can find wrong, as values. Pure.

A violation names the broken rule (one of `RULES`) and, if known, the entry, the order and the account. The
checks raise the first violation as `ViolationFound`, which ends the verification. The report has it as a
value.
"""

from typing import Final, NoReturn

import msgspec

RULES: Final = {
    "book": "the book's row matches its journal, and its id ranges are its own",
    "id": "entries are numbered without gaps, in ranges that belong to the book",
    "time": "an entry is never older than the one before it",
    "posting": "an entry's postings are numbered from 1 and name accounts of the book",
    "balance": "a posting's balances are the sums of the postings up to it",
    "floor": "no account is ever below its floor or above the largest balance",
    "hash": "an entry's hash fits its content and the hash before it",
    "shape": "an entry makes the postings of its kind, with its fee or rate",
    "facts": "an entry's facts can be read",
    "orphan": "every row belongs to an entry",
    "order": "a withdrawal order matches its entry",
    "reference": "an operator's reference names one entry",
    "release": "an order's hold is released once, in the way of its status",
    "step": "an order's steps are legal, consecutive, and end at its status",
    "approval": "an order has the approvals of different people that its limits require",
    "payout": "a payout is of an order of the book and on its chain; it ends after the order, and freezes it",
    "callback": "each status that needs a callback has one",
    "sub-user": "a sub-user matches the entry of its registration",
    "deposit": "a deposit is credited once, by its entry, to the owner of its address",
    "wallet": "a wallet address belongs to its sub-user",
    "account": "an account's balance is the sum of its postings",
    "sum": "all accounts of one currency add up to zero",
    "hold": "the hold account is the sum of the open orders",
    "checkpoint": "the journal matches every signed checkpoint",
    "archive": "an archived entry is in its signed file alone, and its name in the database",
}
"""Every rule that verification checks, each with its sentence."""


class Violation(msgspec.Struct, frozen=True):
    """One broken rule: which one, where, and a sentence with the values that differ."""

    rule: str
    text: str
    entry_id: int | None = None
    order_id: int | None = None
    account: str | None = None


class ViolationFound(Exception):
    """Ends a verification with its first violation."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.rule, violation.text)
        self.violation = violation


def raise_violation(
    rule: str,
    text: str,
    *,
    entry_id: int | None = None,
    order_id: int | None = None,
    account: str | None = None,
) -> NoReturn:
    """Raise `ViolationFound` for a broken rule."""
    assert rule in RULES
    raise ViolationFound(Violation(rule, text, entry_id, order_id, account))
