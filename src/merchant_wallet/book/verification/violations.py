"""Violations: what verification can find wrong, as values. Pure.

A violation names the broken rule (one of `RULES`) and, if known, the entry, the order and the account. The
checks raise the first violation as `ViolationFound`, which ends the verification. The report has it as a
value.
"""

from typing import Final, NoReturn

import msgspec

RULES: Final = {
    "book": "the book's row says what its journal says, and its id ranges are its own",
    "id": "entries are numbered without gaps, in ranges that belong to the book",
    "time": "an entry is never older than the one before it",
    "posting": "an entry's postings are numbered from 1 and name accounts of the book",
    "balance": "a posting keeps the balances that the postings before it add up to",
    "floor": "no account passes its floor or the largest balance at any moment",
    "hash": "an entry's hash is that of its content and of the hash before it",
    "shape": "an entry moves what an entry of its kind moves, with the fee or the rate it names",
    "facts": "an entry's facts can be read",
    "orphan": "no row stands without the entry it belongs to",
    "order": "a withdrawal order is what the journal says of it",
    "reference": "an operator's reference names one entry",
    "release": "an order's hold is released once, in the way its status says",
    "step": "an order's steps are legal, consecutive and end at its status",
    "approval": "as many different people approved an order as its limits ask for",
    "callback": "each status that a merchant is told of has its callback",
    "sub-user": "a sub-user is what the entry of its registration says",
    "deposit": "a deposit is credited once, by its entry, to whom its address belongs",
    "wallet": "a wallet address leads to the sub-user it was made for",
    "account": "an account's row holds what its postings add up to",
    "sum": "all accounts of one currency add up to nothing",
    "hold": "the hold account is the sum of the orders that are still open",
    "checkpoint": "the journal still holds what a signed checkpoint saw",
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
