"""What a group writes: for each statement of `book.sql`, the rows that a batch contributes. Pure.

All arrays of a statement have the same length and stand in the order of its parameters. The first column is
always the merchant's id.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from merchant_wallet.book import arrays, deposits
from merchant_wallet.book.arrays import Encoder, of_bytes, of_ints, of_texts
from merchant_wallet.book.batch import Batch
from merchant_wallet.book.state import Draft

Row = tuple[Any, ...]


class Write(NamedTuple):
    """One statement, and the rows that a draft contributes without the merchant's id.

    `change` is the field of `Changes` that must not be empty. `further` are parameters after the columns.
    `check` is the statement that checks the rows afterwards, by the first `key_columns` of these columns.
    """

    statement: bytes
    change: str
    list_rows: Callable[[Draft], Iterable[Row]]
    encoders: tuple[Encoder, ...]
    further: tuple[bytes, ...] = ()
    check: bytes | None = None
    key_columns: int = 0


_HEAD: Final = (of_ints, of_texts, *(of_ints,) * 5, of_bytes, of_ints, of_ints)


def _head_row(draft: Draft) -> Row:
    return (
        draft.merchant_id,
        draft.version,
        draft.now_ms,
        draft.range_no,
        draft.counter,
        draft.next_range,
        draft.entry_count,
        draft.head_hash,
        draft.withdrawn_day,
        draft.withdrawn_units,
    )


def name_group(draft: Draft, group_id: str) -> str:
    """The nonce by which a group is found at this book: one that it claimed, or else the group's own id.

    No client's nonce begins with `!`.
    """
    return draft.changes.nonces[0] if draft.changes.nonces else f"!{group_id}"


def encode_books(batches: Sequence[Batch], group_id: str) -> list[bytes]:
    """The columns of `write_books`.

    They are the heads in the order of the books' ids, the nonces, the order ids that must be unused and were
    not read, and what most groups write.
    """
    drafts = [batch.judged for batch in batches]
    heads = sorted([_head_row(draft) for draft in drafts])
    nonces = [
        (draft.merchant_id, nonce, draft.day)
        for draft in drafts
        for nonce in draft.changes.nonces or [name_group(draft, group_id)]
    ]
    looked_up = [batch for batch in batches if not batch.names_read]
    orders = [(batch.merchant_id, *name) for batch in looked_up for name in batch.read_set.order_names]
    named = [(batch.merchant_id, name) for batch in looked_up for name in batch.read_set.withdrawal_names]
    columns = [
        *arrays.of_rows(heads, _HEAD),
        *arrays.of_rows(nonces, (of_ints, of_texts, of_ints)),
        *arrays.of_rows(orders, (of_ints, of_texts, of_texts)),
        *arrays.of_rows(named, (of_ints, of_texts)),
    ]
    for list_rows, encoders in _USUAL:
        rows = [(draft.merchant_id, *row) for draft in drafts for row in list_rows(draft)]
        columns += arrays.of_rows(rows, encoders)
    return columns


def encode_writes(batches: Sequence[Batch]) -> Iterator[tuple[bytes, list[bytes]]]:
    """The statements after `write_books` that have rows, with their columns."""
    drafts = [batch.judged for batch in batches]
    if any(any(_CHANGES(draft.changes)) for draft in drafts):
        for write in _WRITES:
            yield from _encode_write(write, drafts)


def _encode_write(write: Write, drafts: Sequence[Draft]) -> Iterator[tuple[bytes, list[bytes]]]:
    rows = [
        (draft.merchant_id, *row)
        for draft in drafts
        if getattr(draft.changes, write.change)
        for row in write.list_rows(draft)
    ]
    if rows:
        encoded = arrays.of_rows(rows, (of_ints, *write.encoders))
        yield write.statement, [*encoded, *write.further]
        if write.check is not None:
            yield write.check, encoded[: write.key_columns]


_ENTRY: Final = attrgetter("entry_id", "kind", "mc_order_id", "at_ms", "rate_e8", "facts", "hash")
_POSTING: Final = attrgetter(
    "source_id", "target_id", "currency", "amount_units", "source_balance", "target_balance"
)
_STEP: Final = attrgetter("order_id", "step_no", "from_status", "to_status", "at_ms", "cause")
_CALLBACK: Final = attrgetter("order_id", "status", "event_id", "created_ms", "event_type")
_NEW_ORDER: Final = attrgetter(
    *("order_id", "mc_order_id", "amount_units", "fee_units", "rate_e8", "chain", "address", "notify_url"),
    *("status", "step_no", "approved_ms", "approved_by", "deadline_ms", "created_ms", "finished_ms"),
    *("tx_hash", "second_limit_units"),
)
_MOVED_ORDER: Final = attrgetter(
    *("approved_ms", "approved_by", "first_approved_by", "finished_ms", "tx_hash", "first_approved_ms"),
    *("first_eligible_ms", "approved_eligible_ms"),
)


def _entries(draft: Draft) -> Iterable[Row]:
    return map(_ENTRY, draft.changes.entries)


def _postings(draft: Draft) -> Iterable[Row]:
    """They are numbered from 1 within each entry."""
    return [
        (entry.entry_id, number, *_POSTING(posting))
        for entry in draft.changes.entries
        for number, posting in enumerate(entry.postings, 1)
    ]


def _new_accounts(draft: Draft) -> Iterable[Row]:
    for user_id in draft.changes.registered:
        user = draft.sub_users[user_id]
        yield user_id, user.currency, draft.balances[user_id], user.day, user.day_debited


def _list_touched(draft: Draft) -> Iterable[int]:
    """The accounts that existed before and whose balance changed."""
    changes = draft.changes
    return changes.touched.difference(changes.registered) if changes.registered else changes.touched


def _touched_accounts(draft: Draft) -> Iterable[Row]:
    """The counts of a day are written only where a sub-user was debited."""
    debited = draft.changes.debited
    for account_id in _list_touched(draft):
        user = draft.sub_users[account_id] if account_id in debited else None
        counts = (None, None) if user is None else (user.day, user.day_debited)
        yield account_id, draft.balances[account_id], *counts


def _new_sub_users(draft: Draft) -> Iterable[Row]:
    for user_id, index in zip(draft.changes.registered, draft.changes.address_indexes, strict=True):
        user = draft.sub_users[user_id]
        yield user_id, user.ext_user_id, index, user.evm_address, user.tron_address, draft.now_ms


def _wallet_addresses(draft: Draft) -> Iterable[Row]:
    for user_id in draft.changes.registered:
        user = draft.sub_users[user_id]
        yield user.evm_address, user_id
        yield user.tron_address, user_id


def _steps(draft: Draft) -> Iterable[Row]:
    return map(_STEP, draft.changes.steps)


def _new_orders(draft: Draft) -> Iterable[Row]:
    return [_NEW_ORDER(draft.withdrawals[order_id]) for order_id in draft.changes.created]


def _moved_orders(draft: Draft) -> Iterable[Row]:
    """The orders that existed before and whose status changed, each with the step that the batch saw."""
    changes = draft.changes
    taken = Counter(step.order_id for step in changes.steps)
    for order_id in changes.moved.difference(changes.created):
        order = draft.withdrawals[order_id]
        seen_step_no = order.step_no - taken[order_id]
        yield order_id, order.status, order.step_no, seen_step_no, *_MOVED_ORDER(order)


def _callbacks(draft: Draft) -> Iterable[Row]:
    return map(_CALLBACK, draft.changes.callbacks)


_I, _T, _B = of_ints, of_texts, of_bytes
_WRITES: Final = (
    Write(b"insert_accounts", "registered", _new_accounts, (_I, _T, _I, _I, _I)),
    Write(b"insert_sub_users", "registered", _new_sub_users, (_I, _T, _I, _B, _B, _I)),
    Write(b"insert_wallet_addresses", "registered", _wallet_addresses, (_B, _I)),
    Write(b"insert_steps", "steps", _steps, (_I, _I, _I, _I, _I, _T)),
    Write(
        b"insert_withdrawals",
        "created",
        _new_orders,
        (_I, _T, _I, _I, _I, _T, _T, _T, _I, _I, _I, _T, _I, _I, _I, _T, _I),
    ),
    Write(
        b"update_withdrawals",
        "moved",
        _moved_orders,
        (_I, _I, _I, _I, _I, _T, _T, _I, _T, _I, _I, _I),
        check=b"check_withdrawals",
        key_columns=4,
    ),
    Write(b"insert_credited_transactions", "credited", deposits.list_blocks, (_T, _T, _T)),
    Write(b"insert_credits", "credited", deposits.list_credits, (*deposits.KEY, _I, _T, _I, _I, _T, _T)),
    Write(
        b"update_deposits",
        "credited",
        deposits.list_credited,
        deposits.KEY,
        further=(b"pending",),
        check=b"check_deposits",
        key_columns=4,
    ),
    Write(b"insert_callbacks", "callbacks", _callbacks, (_I, _I, _T, _I, _T)),
)
_CHANGES: Final = attrgetter(*dict.fromkeys(write.change for write in _WRITES))
_USUAL: Final = (
    (_entries, (_I, _I, _T, _T, _I, _I, _T, _B)),
    (_postings, (_I, _I, _I, _I, _I, _T, _I, _I, _I)),
    (_touched_accounts, (_I, _I, _I, _I, _I)),
)
