"""Preconditions of an optimistic batch: statements that fail it unless the cached book equals the database's.

Rules:
- The first statement takes the book's lock.
- Each precondition fails the batch before its COMMIT unless the database has exactly what the draft began
  with.
- What never changes about a sub-user (ids, addresses, currency) is not compared again.

The statements are in `preconditions.sql`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from merchant_wallet.base.db import Queries
from merchant_wallet.book import arrays
from merchant_wallet.book.cache import CachedBook
from merchant_wallet.book.columns import BookStatement
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Head
from merchant_wallet.book.sub_user import COMPARED

_FIRST, _FIRST_OF_ONE = 32, 29
"""The parameter with the first compared column, in `write_optimistic` and `write_optimistic_transfer`."""
QUERIES: Final = Queries(
    Path(__file__).with_name("preconditions.sql"),
    {
        "compared": ", ".join(f"{column.expression} as {column.name}" for column in COMPARED),
        "seen": ", ".join(
            f"unnest(${number}::{column.sql_type}[]) as {column.name}"
            for number, column in enumerate(COMPARED, _FIRST)
        ),
        "is_as_seen": " and ".join(
            f"s.{column.name} is not distinct from u.{column.name}" for column in COMPARED
        ),
        "is_as_seen_one": " and ".join(
            f"({column.expression}) is not distinct from ${number}::{column.sql_type}"
            for number, column in enumerate(COMPARED, _FIRST_OF_ONE)
        ),
    },
)


def check_and_advance_book(draft: Draft, seen: Head) -> BookStatement:
    """Lock the book and write its new head, but only if its head is the one that the draft began with."""
    head = draft.head
    return b"check_and_advance_book", (b"%d" % head.last_ms, *_head_columns(head), *_head_columns(seen))


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


def check_untouched(draft: Draft, cached: CachedBook) -> Iterator[BookStatement]:
    """Check that balances which the batch read but did not change equal the cached ones."""
    untouched = draft.balances.keys() - draft.changes.touched
    if untouched:
        yield b"check_accounts", (*_cached_columns(list(untouched), cached), b"%d" % len(untouched))


def account_columns(draft: Draft, cached: CachedBook) -> tuple[bytes, ...]:
    """The new balances, and the ones before the batch."""
    touched = list(draft.changes.touched)
    users = [draft.sub_users.get(account_id) for account_id in touched]
    return (
        *_cached_columns(touched, cached),
        arrays.of_ints([draft.balances[account_id] for account_id in touched]),
        arrays.of_ints([None if user is None else user.day for user in users]),
        arrays.of_ints([None if user is None else user.day_debited for user in users]),
        b"%d" % len(touched),
    )


def read_columns(draft: Draft, read_set: ReadSet) -> tuple[bytes, ...]:
    """What the batch read without writing it: unused nonces, unused order ids, sub-users."""
    names = read_set.nonces, read_set.mc_order_ids, read_set.order_kinds
    return (*[arrays.of_texts(texts) for texts in names], *_sub_user_columns(draft))


def is_one_transfer(draft: Draft, read_set: ReadSet) -> bool:
    """Whether the batch is one transfer between two accounts, with a nonce, an order id and a sub-user."""
    changes = draft.changes
    if len(changes.entries) != 1 or len(changes.nonces) != 1 or len(draft.sub_users) != 1:
        return False
    (entry,) = changes.entries
    return (
        len(entry.postings) == 1
        and changes.touched == {entry.postings[0].source_id, entry.postings[0].target_id}
        and read_set.nonces == set(changes.nonces)
        and read_set.mc_order_ids == {entry.mc_order_id}
        and read_set.order_kinds == {entry.kind}
    )


def write_one_transfer(draft: Draft, cached: CachedBook, batch_id: str) -> BookStatement:
    """The same as `write_optimistic`, for a batch that `is_one_transfer`."""
    ((user_id, user),) = draft.sub_users.items()
    (entry,) = draft.changes.entries
    (posting,) = entry.postings
    columns = (
        draft.day,
        batch_id,
        draft.changes.nonces[0],
        entry.entry_id,
        entry.kind,
        entry.mc_order_id,
        entry.at_ms,
        entry.rate_e8,
        entry.facts,
        "\\x" + entry.hash.hex(),
        posting.source_id,
        posting.target_id,
        posting.currency,
        posting.amount_units,
        draft.balances[posting.source_id],
        draft.balances[posting.target_id],
        *_account_values(draft, cached, posting.source_id),
        *_account_values(draft, cached, posting.target_id),
        user_id,
        *[column.get(user) for column in COMPARED],
    )
    values = [None if value is None else str(value).encode() for value in columns]
    return b"write_optimistic_transfer", tuple(values)


def _account_values(draft: Draft, cached: CachedBook, account_id: int) -> tuple[int | None, ...]:
    before, after = cached.sub_user_of(account_id), draft.sub_users.get(account_id)
    return (
        cached.balance_of(account_id),
        *((None, None) if before is None else (before.day, before.day_debited)),
        *((None, None) if after is None else (after.day, after.day_debited)),
    )


def _sub_user_columns(draft: Draft) -> tuple[bytes, ...]:
    users = draft.sub_users.values()
    return (
        arrays.of_ints(draft.sub_users),
        b"%d" % len(users),
        *[column.make_array(map(column.get, users)) for column in COMPARED],
    )


def _cached_columns(account_ids: list[int], cached: CachedBook) -> tuple[bytes, ...]:
    users = [cached.sub_user_of(account_id) for account_id in account_ids]
    return (
        arrays.of_ints(account_ids),
        arrays.of_ints([cached.balance_of(account_id) for account_id in account_ids]),
        arrays.of_ints([None if user is None else user.day for user in users]),
        arrays.of_ints([None if user is None else user.day_debited for user in users]),
    )
