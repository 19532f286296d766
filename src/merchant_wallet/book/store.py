"""The book's SQL: reads what a batch needs under the book's lock, and writes what the rules decided.

Rules:
- A batch needs one statement for each table, whatever its size. The first parameter is always the merchant.
- A batch that reads first needs two flushes: lock and read, then write and commit. An optimistic batch needs
  one.
- Each statement compares the number of rows that it changed with the number that the rules decided.

The statements are in `book.sql` and `preconditions.sql`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from psycopg.pq.abc import PGresult

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.book import arrays, columns, deposits, idempotency, preconditions, sub_user
from merchant_wallet.book.arrays import read_rows
from merchant_wallet.book.cache import CachedBook
from merchant_wallet.book.columns import BookStatement
from merchant_wallet.book.connection import BEGIN, COMMIT, PipelineConnection, StatementCall
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Rate

QUERIES: Final = Queries(Path(__file__).with_name("book.sql"), {"sub_user": sub_user.SELECTED})
STATEMENTS: Final = {
    name.encode(): query.text.encode() for name, query in (*QUERIES.items(), *preconditions.QUERIES.items())
}


class BookMissing(Exception):
    """The merchant has no book."""


async def open_draft(
    connection: PipelineConnection, merchant_id: int, read_set: ReadSet, now_ms: int
) -> Draft:
    """Begin the transaction, take the book's lock and read what the batch needs.

    Raises BookMissing, ConnectionLost, StatementFailed.
    """
    merchant = b"%d" % merchant_id
    calls: list[StatementCall] = [(BEGIN, ()), (b"lock_book", (merchant, b"%d" % now_ms))]
    readers = []
    for name, parameters, reader in _plan_reads(read_set):
        calls.append((name, (merchant, *parameters)))
        readers.append(reader)
    results = await connection.run(calls)
    draft = _read_book(merchant_id, results[1])
    for reader, result in zip(readers, results[2:], strict=True):
        reader(draft, result)
    if read_set.mc_order_ids and (found := read_rows(results[-1])):
        await idempotency.add_earlier_entries(connection, draft, found)
    return draft


def _plan_reads(
    read_set: ReadSet,
) -> Iterator[tuple[bytes, tuple[bytes, ...], Callable[[Draft, PGresult], None]]]:
    if read_set.nonces:
        yield b"find_nonces", (arrays.of_texts(read_set.nonces),), _read_nonces
    if read_set.ext_user_ids:
        yield b"read_sub_users_by_ext", (arrays.of_texts(read_set.ext_user_ids),), _read_sub_users
    if read_set.addresses:
        yield b"read_sub_users_by_address", (arrays.of_bytes(read_set.addresses),), _read_sub_users
    if read_set.accounts:
        yield b"read_accounts", (arrays.of_ints(read_set.accounts),), _read_accounts
    if read_set.withdrawal_ids or read_set.withdrawal_mc_ids:
        ids = arrays.of_ints(read_set.withdrawal_ids), arrays.of_texts(read_set.withdrawal_mc_ids)
        yield b"read_withdrawals", ids, _read_withdrawals
    if read_set.stoppable_ids:
        yield b"read_stops", (arrays.of_ints(read_set.stoppable_ids),), _read_stops
    if read_set.rates:
        yield b"read_rates", (), _read_rates
    if read_set.deposits:
        yield b"read_deposits", deposits.encode_keys(read_set.deposits), deposits.read
    if read_set.mc_order_ids:
        # It must be the last: `open_draft` reads its result itself.
        names = arrays.of_texts(read_set.mc_order_ids), arrays.of_texts(read_set.order_kinds)
        yield b"find_earlier_entries", names, lambda draft, result: None


def _read_book(merchant_id: int, result: PGresult) -> Draft:
    rows = read_rows(result)
    if not rows:
        raise BookMissing(str(merchant_id))
    range_no, counter, next_range, count, head, last_ms, version, day, withdrawn = rows[0]
    return Draft(
        merchant_id=merchant_id,
        now_ms=int(last_ms),
        range_no=int(range_no),
        counter=int(counter),
        next_range=arrays.read_optional_int(next_range),
        entry_count=int(count),
        head_hash=arrays.read_bytes(head),
        settings_version=int(version),
        withdrawn_day=int(day),
        withdrawn_units=int(withdrawn),
    )


def _read_nonces(draft: Draft, result: PGresult) -> None:
    draft.used_nonces.update(row[0].decode() for row in read_rows(result))


def _read_accounts(draft: Draft, result: PGresult) -> None:
    for account_id, balance in read_rows(result):
        draft.balances[int(account_id)] = int(balance)


def _read_sub_users(draft: Draft, result: PGresult) -> None:
    for *values, balance in read_rows(result):
        found = sub_user.read_row(values)
        if found.user_id not in draft.sub_users:
            draft.add_sub_user(found, int(balance))


def _read_withdrawals(draft: Draft, result: PGresult) -> None:
    optional = arrays.read_optional_int
    for row in read_rows(result):
        withdrawal = Withdrawal(
            order_id=int(row[0]),
            mc_order_id=row[1].decode(),
            amount_units=int(row[2]),
            fee_units=int(row[3]),
            rate_e8=int(row[4]),
            chain=row[5].decode(),
            address=row[6].decode(),
            notify_url=row[7].decode(),
            status=int(row[8]),
            step_no=int(row[9]),
            approved_ms=optional(row[10]),
            deadline_ms=int(row[11]),
            created_ms=int(row[12]),
            finished_ms=optional(row[13]),
            notified_ms=optional(row[14]),
            tx_hash=arrays.read_optional_text(row[15]),
            second_limit_units=optional(row[16]),
            first_approved_by=arrays.read_optional_text(row[17]),
            approved_by=arrays.read_optional_text(row[18]),
            first_approved_ms=optional(row[19]),
            first_eligible_ms=optional(row[20]),
            approved_eligible_ms=optional(row[21]),
        )
        draft.put_withdrawal(withdrawal)


def _read_stops(draft: Draft, result: PGresult) -> None:
    found = [arrays.read_optional_int(order_id) for (order_id,) in read_rows(result)]
    draft.is_rolled_back = None in found
    draft.frozen_orders.update(order_id for order_id in found if order_id is not None)


def _read_rates(draft: Draft, result: PGresult) -> None:
    """The platform's row comes first. A merchant's row overrides it for each direction, and may pause it."""
    optional = arrays.read_optional_int
    for row in read_rows(result):
        for pair, (rate, paused, set_ms, age) in (((USDT, KFB), row[1:5]), ((KFB, USDT), row[5:9])):
            below = draft.rates.get(pair)
            if rate is not None:
                draft.rates[pair] = Rate(int(rate), paused == b"t", int(set_ms or 0), optional(age))
            elif below is not None and paused == b"t":
                draft.rates[pair] = msgspec.structs.replace(below, paused=True)


async def commit_draft(connection: PipelineConnection, draft: Draft, batch_id: str, seen_count: int) -> None:
    """Write what the batch changed, and commit. `seen_count` is the entry count that the draft began with.

    If a statement changes another number of rows than the rules decided, the batch fails. Raises
    StatementFailed, and ConnectionLost when COMMIT gets no answer.
    """
    calls = [
        *_write_claims(draft, batch_id),
        *_write_entries(draft),
        *_write_accounts(draft),
        *_write_sub_users(draft),
    ]
    calls += [*_write_withdrawals(draft), *deposits.write(draft), *_write_callbacks(draft)]
    calls.append(_advance(draft, seen_count))
    merchant = b"%d" % draft.merchant_id
    await connection.run([*((name, (merchant, *parameters)) for name, parameters in calls), (COMMIT, ())])


async def commit_optimistic(
    connection: PipelineConnection, draft: Draft, cached: CachedBook, read_set: ReadSet, batch_id: str
) -> None:
    """Check the preconditions, write what the batch changed, and commit: one flush, one transaction.

    Raises StatementFailed, also for a conflict, and ConnectionLost when there is no answer.
    """
    changes = draft.changes
    further = [changes.registered, changes.steps, changes.credited, changes.callbacks]
    assert not any(further), "a command that does any of this needs rows that are never cached"
    if preconditions.is_one_transfer(draft, read_set):
        write = preconditions.write_one_transfer(draft, cached, batch_id)
    else:
        write = b"write_optimistic", _optimistic_columns(draft, cached, read_set, batch_id)
    calls = [
        preconditions.check_and_advance_book(draft, cached.head),
        *preconditions.check_untouched(draft, cached),
        write,
    ]
    merchant = b"%d" % draft.merchant_id
    await connection.run([(name, (merchant, *parameters)) for name, parameters in calls])


def _optimistic_columns(
    draft: Draft, cached: CachedBook, read_set: ReadSet, batch_id: str
) -> tuple[bytes, ...]:
    entries = draft.changes.entries
    return (
        *columns.of_claims(draft, batch_id),
        *columns.of_entries(entries),
        *columns.of_postings(entries),
        *preconditions.account_columns(draft, cached),
        *preconditions.read_columns(draft, read_set),
    )


async def was_committed(
    connection: PipelineConnection, merchant_id: int, batch_id: str, judged_ms: int
) -> bool:
    """Whether the batch that was judged at `judged_ms` was committed. If not, it never will be.

    A batch that was read held the book's lock. This function takes the lock, so that batch has ended. An
    optimistic batch may still wait, unread, in a stalled session. So the book's clock is moved past
    `judged_ms`, and then the batch's first statement fails. Raises BookMissing, StatementFailed,
    ConnectionLost.
    """
    merchant = b"%d" % merchant_id
    calls: list[StatementCall] = [
        (b"lock_book", (merchant, b"%d" % (judged_ms + 1))),
        (b"find_batch", (merchant, batch_id.encode())),
    ]
    results = await connection.run(calls)
    return results[1].ntuples == 1


def _write_claims(draft: Draft, batch_id: str) -> Iterator[BookStatement]:
    yield b"insert_nonces", columns.of_claims(draft, batch_id)


def _write_entries(draft: Draft) -> Iterator[BookStatement]:
    entries = draft.changes.entries
    if not entries:
        return
    yield b"insert_entries", columns.of_entries(entries)
    if any(entry.postings for entry in entries):
        yield b"insert_postings", columns.of_postings(entries)


def _write_accounts(draft: Draft) -> Iterator[BookStatement]:
    changes = draft.changes
    opened = set(changes.registered)
    touched = [account_id for account_id in changes.touched if account_id not in opened]
    if touched:
        debited = [
            draft.sub_users[account_id] if account_id in changes.debited else None for account_id in touched
        ]
        yield (
            b"update_accounts",
            (
                arrays.of_ints(touched),
                arrays.of_ints([draft.balances[account_id] for account_id in touched]),
                arrays.of_ints([None if user is None else user.day for user in debited]),
                arrays.of_ints([None if user is None else user.day_debited for user in debited]),
                b"%d" % len(touched),
            ),
        )


def _write_sub_users(draft: Draft) -> Iterator[BookStatement]:
    opened = [draft.sub_users[user_id] for user_id in draft.changes.registered]
    if not opened:
        return
    ids = arrays.of_ints([user.user_id for user in opened])
    evm = [user.evm_address for user in opened]
    tron = [user.tron_address for user in opened]
    yield (
        b"insert_accounts",
        (
            ids,
            arrays.of_texts([user.currency for user in opened]),
            arrays.of_ints([draft.balances[user.user_id] for user in opened]),
            arrays.of_ints([user.day for user in opened]),
            arrays.of_ints([user.day_debited for user in opened]),
        ),
    )
    exts = arrays.of_texts([user.ext_user_id for user in opened])
    names = ids, exts, arrays.of_ints(draft.changes.address_indexes)
    yield b"insert_sub_users", (*names, arrays.of_bytes(evm), arrays.of_bytes(tron), b"%d" % draft.now_ms)
    both = arrays.of_bytes(evm + tron)
    yield b"insert_wallet_addresses", (both, arrays.of_ints([user.user_id for user in opened] * 2))
    yield b"insert_issued_addresses", (both,)


def _write_withdrawals(draft: Draft) -> Iterator[BookStatement]:
    changes = draft.changes
    if changes.steps:
        steps = changes.steps
        yield (
            b"insert_steps",
            (
                arrays.of_ints([step.order_id for step in steps]),
                arrays.of_ints([step.step_no for step in steps]),
                arrays.of_ints([step.from_status for step in steps]),
                arrays.of_ints([step.to_status for step in steps]),
                arrays.of_ints([step.at_ms for step in steps]),
                arrays.of_texts([step.cause for step in steps]),
            ),
        )
    if changes.created:
        yield b"insert_withdrawals", columns.of_new_orders(draft)
    moved = [draft.withdrawals[order_id] for order_id in changes.moved if order_id not in changes.created]
    if moved:
        yield b"update_withdrawals", columns.of_moved_orders(changes, moved)


def _write_callbacks(draft: Draft) -> Iterator[BookStatement]:
    if due := draft.changes.callbacks:
        told = (
            arrays.of_ints([callback.order_id for callback in due]),
            arrays.of_ints([callback.status for callback in due]),
            arrays.of_texts([callback.event_id for callback in due]),
            arrays.of_ints([callback.created_ms for callback in due]),
            arrays.of_texts([callback.event_type for callback in due]),
        )
        yield b"insert_callbacks", told


def _advance(draft: Draft, seen_count: int) -> BookStatement:
    next_range = None if draft.next_range is None else b"%d" % draft.next_range
    return b"advance_book", (
        b"%d" % draft.range_no,
        b"%d" % draft.counter,
        next_range,
        b"%d" % draft.entry_count,
        arrays.of_hex(draft.head_hash),
        b"%d" % draft.withdrawn_day,
        b"%d" % draft.withdrawn_units,
        b"%d" % seen_count,
    )
