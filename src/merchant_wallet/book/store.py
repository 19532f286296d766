"""Writes groups: everything that the rules decided for many books, in one transaction and one flush.

Rules:
- A group needs one statement for what most groups write, and one for each other table, whatever its size.
- A group of one statement is a transaction without BEGIN and COMMIT, which would cost as two statements more.
- The claim comes first. It marks the books that are as they were judged on. All else is written for the
  marked books alone. So a book that has changed simply stays out.
- If a row that must be there is missing, the whole group fails.

The statements are in `book.sql`.
"""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from psycopg.pq.abc import PGresult

from merchant_wallet.base.bell import RING
from merchant_wallet.base.db import Queries
from merchant_wallet.book import arrays, columns, sub_user
from merchant_wallet.book.arrays import of_ints, of_texts, read_rows
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.connection import BEGIN, COMMIT, PipelineConnection, StatementCall

QUERIES: Final = Queries(Path(__file__).with_name("book.sql"), {"sub_user": sub_user.SELECTED})
STATEMENTS: Final = {
    **{name.encode(): query.text.encode() for name, query in QUERIES.items()},
    b"ring": RING.encode(),
}
_LEAVES_WORK: Final = frozenset({b"insert_withdrawals", b"update_withdrawals", b"insert_callbacks"})
"""After these a worker has an order to pay or a callback to send."""


async def commit_group(
    connection: PipelineConnection, batches: Sequence[Batch], group_id: str
) -> frozenset[int]:
    """Write what the batches changed, and commit. Returns the merchants whose batch was committed.

    In mode LOCKED the transaction has begun already. Raises StatementFailed, and ConnectionLost when the
    commit gets no answer.
    """
    group = group_id.encode()
    calls: list[StatementCall] = [(b"write_books", (group, *columns.encode_books(batches, group_id)))]
    calls += [(name, (group, *encoded)) for name, encoded in columns.encode_writes(batches)]
    if any(name in _LEAVES_WORK for name, _ in calls):
        calls.append((b"ring", ()))
    claim_no = 0
    if batches[0].mode is Mode.LOCKED:
        calls.append((COMMIT, ()))
    elif len(calls) > 1:
        claim_no, calls = 1, [(BEGIN, ()), *calls, (COMMIT, ())]
    results = await connection.run(calls)
    return _read_merchants(results[claim_no])


async def find_committed(
    connection: PipelineConnection, batches: Sequence[Batch], group_id: str
) -> frozenset[int]:
    """The merchants whose batch was committed by a group whose COMMIT got no answer.

    What was not committed never will be. A transaction that still runs holds the books' locks, and this
    function waits for them. A group may also wait, unread, in a stalled session. So the books' versions are
    moved, and then its claim finds nothing. Raises StatementFailed, ConnectionLost.
    """
    merchants = [batch.merchant_id for batch in batches]
    names = [(batch.merchant_id, columns.name_group(batch.judged, group_id)) for batch in batches]
    calls: list[StatementCall] = [
        (BEGIN, ()),
        (b"outdate_books", (of_ints(merchants), str(uuid.uuid4()).encode())),
        (b"find_committed", (group_id.encode(), *arrays.of_rows(names, (of_ints, of_texts)))),
        (COMMIT, ()),
    ]
    return _read_merchants((await connection.run(calls))[2])


def _read_merchants(result: PGresult) -> frozenset[int]:
    return frozenset([int(merchant_id) for (merchant_id,) in read_rows(result)])
