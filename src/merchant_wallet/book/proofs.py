"""The statements by which a foreseen batch proves what it was judged on, with the balances it changes.

Rules: the book's lock comes first; each proof fails the batch before its COMMIT unless the database holds
exactly what the draft began with. What never changes about a sub-user (its ids, addresses
and currency) is not compared again. Statements are in `proofs.sql`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from merchant_wallet.book import arrays
from merchant_wallet.book.foresight import Memory
from merchant_wallet.book.needs import Needs
from merchant_wallet.book.state import Draft, Head
from merchant_wallet.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("proofs.sql"))

Write = tuple[bytes, tuple[bytes | None, ...]]


def claim_book(draft: Draft, seen: Head) -> Write:
    """Take the lock and move the book on, only from the head that the draft began with."""
    head = draft.head
    return b"claim_book", (b"%d" % head.last_ms, *_head_columns(head), *_head_columns(seen))


def _head_columns(head: Head) -> tuple[bytes | None, ...]:
    return (
        b"%d" % head.range_no,
        b"%d" % head.counter,
        None if head.next_range is None else b"%d" % head.next_range,
        b"%d" % head.entry_count,
        arrays.of_hex(head.head_hash),
        b"%d" % head.settings_version,
        b"%d" % head.withdrawn_day,
        b"%d" % head.withdrawn_units,
    )


def prove_reads(draft: Draft, seen: Memory, needs: Needs) -> Iterator[Write]:
    """What is not written: nonces and order ids are new, sub-users and other balances as remembered."""
    if needs.nonces or needs.order_ids_known:
        names = needs.nonces, needs.order_ids_known, needs.order_kinds
        yield b"prove_new", tuple([arrays.of_texts(texts) for texts in names])
    if draft.sub_users:
        yield b"prove_sub_users", _sub_user_columns(draft)
    untouched = draft.balances.keys() - draft.changes.touched
    if untouched:
        yield b"prove_accounts", (*_seen_columns(list(untouched), seen), b"%d" % len(untouched))


def _sub_user_columns(draft: Draft) -> tuple[bytes, ...]:
    users = draft.sub_users.values()
    return (
        arrays.of_ints(draft.sub_users),
        arrays.of_texts([user.username for user in users]),
        arrays.of_bools([user.paused for user in users]),
        arrays.of_ints([user.limit_debit_units for user in users]),
        arrays.of_ints([user.limit_day_units for user in users]),
        arrays.of_bools([user.has_pin for user in users]),
        b"%d" % len(users),
    )


def _seen_columns(account_ids: list[int], seen: Memory) -> tuple[bytes, ...]:
    users = [seen.seen_sub_user(account_id) for account_id in account_ids]
    return (
        arrays.of_ints(account_ids),
        arrays.of_ints([seen.seen_balance(account_id) for account_id in account_ids]),
        arrays.of_ints([None if user is None else user.day for user in users]),
        arrays.of_ints([None if user is None else user.day_debited for user in users]),
    )


def write_accounts(draft: Draft, seen: Memory) -> Iterator[Write]:
    """The new balances, each only from the one that the draft began with."""
    touched = list(draft.changes.touched)
    if touched:
        users = [draft.sub_users.get(account_id) for account_id in touched]
        yield (
            b"update_seen_accounts",
            (
                *_seen_columns(touched, seen),
                arrays.of_ints([draft.balances[account_id] for account_id in touched]),
                arrays.of_ints([None if user is None else user.day for user in users]),
                arrays.of_ints([None if user is None else user.day_debited for user in users]),
                b"%d" % len(touched),
            ),
        )
