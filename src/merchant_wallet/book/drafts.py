"""Reads the drafts of batches: what the rules need to know of each book, for all books of a group at once.

Rules:
- The heads are read before everything else. Whatever changes after that moves the book's version, and then
  the claim fails (see `book.sql`). So nothing needs a lock.
- A batch whose book is cached keeps the cached head. Then only what the cache lacks is read, and the version
  of the cached head is the one that is claimed.
- In mode LOCKED the transaction begins here with the book's lock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book import arrays, deposits, idempotency, sub_user
from merchant_wallet.book.arrays import Encoder, of_bytes, of_ints, of_texts, read_rows
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.connection import BEGIN, LOCK_BOOK, PipelineConnection, StatementCall
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Rate

Rows = Sequence[Sequence[Any]]
Drafts = Mapping[int, Draft]
PLATFORM: Final = 0
"""The merchant id of the platform's own rates."""


_read_withdrawal: Final = arrays.make_row_reader(Withdrawal)


class Read(NamedTuple):
    """One kind of look-up: its statement, the keys that a read set names, and what to do with the rows.

    `at_moment` says that the time in milliseconds is a parameter after the keys.
    """

    statement: bytes
    list_keys: Callable[[ReadSet], Iterable[tuple[Any, ...]]]
    encoders: tuple[Encoder, ...]
    add_rows: Callable[[Drafts, Rows], None]
    at_moment: bool = False


async def read_drafts(connection: PipelineConnection, batches: Sequence[Batch], now_ms: int) -> None:
    """Read what the batches' drafts lack. A batch whose book does not exist stays without a draft.

    Raises ConnectionLost, StatementFailed.
    """
    calls = _begin(batches)
    first = len(calls)
    reads = []
    for read in _READS:
        keys = [
            (batch.merchant_id, *key)
            for batch in batches
            if batch.missing is not None
            for key in read.list_keys(batch.missing)
        ]
        if keys:
            moment = [b"%d" % now_ms] if read.at_moment else []
            calls.append((read.statement, [*arrays.of_rows(keys, (of_ints, *read.encoders)), *moment]))
            reads.append(read)
    results = await connection.run(calls)
    drafts = {batch.merchant_id: batch.draft for batch in batches if batch.draft is not None}
    if first:
        drafts |= _read_heads(read_rows(results[first - 1]), now_ms)
    for read, result in zip(reads, results[first:], strict=True):
        read.add_rows(drafts, read_rows(result))
    await _add_earlier_entries(connection, drafts, reads, results)
    for batch in batches:
        batch.draft = drafts.get(batch.merchant_id)


def _begin(batches: Sequence[Batch]) -> list[StatementCall]:
    """The statements that read the heads."""
    unknown = [batch.merchant_id for batch in batches if batch.draft is None]
    if not unknown:
        return []
    if batches[0].mode is Mode.LOCKED:
        (merchant_id,) = unknown
        return [(BEGIN, ()), (LOCK_BOOK, (b"%d" % merchant_id,))]
    return [(b"read_books", (of_ints(unknown),))]


def _read_heads(rows: Rows, now_ms: int) -> dict[int, Draft]:
    drafts = {}
    for row in rows:
        merchant_id, version, range_no, counter, next_range, count, head, last_ms, settings, *others = row
        day, units, is_open = others
        drafts[int(merchant_id)] = Draft(
            merchant_id=int(merchant_id),
            now_ms=max(now_ms, int(last_ms)),
            range_no=int(range_no),
            counter=int(counter),
            next_range=arrays.read_optional_int(next_range),
            entry_count=int(count),
            head_hash=arrays.read_bytes(head),
            settings_version=int(settings),
            withdrawn_day=int(day),
            withdrawn_units=int(units),
            version=version.decode(),
            is_open=is_open == b"t",
        )
    return drafts


async def _add_earlier_entries(
    connection: PipelineConnection, drafts: Drafts, reads: Sequence[Read], results: Sequence[Any]
) -> None:
    """Add the first outcomes of order ids that were used before. Entries never change, so this can wait."""
    if reads and reads[-1] is _EARLIER_ENTRIES and (found := read_rows(results[-1])):
        keys = [
            (int(merchant_id), int(entry_id), name.decode(), kind.decode())
            for merchant_id, entry_id, kind, name, *_ in found
        ]
        encoders = (of_ints, of_ints, of_texts, of_texts)
        (result,) = await connection.run([(b"read_postings", arrays.of_rows(keys, encoders))])
        idempotency.add_earlier_entries(drafts, found, read_rows(result))


def _add_nonces(drafts: Drafts, rows: Rows) -> None:
    for merchant_id, nonce in rows:
        drafts[int(merchant_id)].used_nonces.add(nonce.decode())


def _add_accounts(drafts: Drafts, rows: Rows) -> None:
    for merchant_id, account_id, balance in rows:
        drafts[int(merchant_id)].balances[int(account_id)] = int(balance)


def _add_sub_users(drafts: Drafts, rows: Rows) -> None:
    for merchant_id, *values, balance in rows:
        draft, found = drafts[int(merchant_id)], sub_user.read_row(values)
        if found.user_id not in draft.sub_users:
            draft.add_sub_user(found, int(balance))


def _add_withdrawals(drafts: Drafts, rows: Rows) -> None:
    for merchant_id, *values in rows:
        drafts[int(merchant_id)].put_withdrawal(_read_withdrawal(values))


def _add_stops(drafts: Drafts, rows: Rows) -> None:
    for merchant_id, order_id in rows:
        if merchant_id is None:
            for draft in drafts.values():
                draft.is_rolled_back = True
        else:
            drafts[int(merchant_id)].frozen_orders.add(int(order_id))


def _add_rates(drafts: Drafts, rows: Rows) -> None:
    """The platform's row comes first. A merchant's row overrides it for each direction, and may pause it."""
    for merchant_id, *row in rows:
        found = int(merchant_id)
        for draft in drafts.values() if found == PLATFORM else (drafts[found],):
            _override_rates(draft, row)


def _override_rates(draft: Draft, row: Sequence[Any]) -> None:
    for pair, (rate, paused, set_ms, age) in (((USDT, KFB), row[:4]), ((KFB, USDT), row[4:])):
        below = draft.rates.get(pair)
        if rate is not None:
            draft.rates[pair] = Rate(
                int(rate), paused == b"t", int(set_ms or 0), arrays.read_optional_int(age)
            )
        elif below is not None and paused == b"t":
            draft.rates[pair] = msgspec.structs.replace(below, paused=True)


def _singles(name: str) -> Callable[[ReadSet], Iterable[tuple[Any, ...]]]:
    """The keys of one field of the read set."""
    return lambda read_set: [(key,) for key in getattr(read_set, name)]


_EARLIER_ENTRIES: Final = Read(
    b"find_earlier_entries", lambda rs: rs.order_names, (of_texts, of_texts), lambda drafts, rows: None
)
"""It must be the last of all: `_add_earlier_entries` reads its rows itself."""

_READS: Final = (
    Read(b"find_nonces", _singles("nonces"), (of_texts,), _add_nonces),
    Read(b"read_sub_users_by_ext", _singles("ext_user_ids"), (of_texts,), _add_sub_users),
    Read(b"read_sub_users_by_address", _singles("addresses"), (of_bytes,), _add_sub_users),
    Read(b"read_accounts", _singles("accounts"), (of_ints,), _add_accounts),
    Read(b"read_withdrawals", _singles("withdrawal_ids"), (of_ints,), _add_withdrawals),
    Read(b"read_withdrawals_by_name", _singles("withdrawal_names"), (of_texts,), _add_withdrawals),
    Read(b"read_stops", _singles("stoppable_ids"), (of_ints,), _add_stops),
    Read(b"read_rates", lambda rs: [()] if rs.rates else [], (), _add_rates, at_moment=True),
    Read(b"read_deposits", deposits.list_keys, deposits.KEY, deposits.add_rows),
    _EARLIER_ENTRIES,
)
