"""The orders that an acceptance freezes, because they may have been paid in the lost part.

Rules:
- Each cell's orders are frozen first, in a transaction for each book. Home's payouts are frozen in the
  transaction that deletes the evidence.
- An acceptance that is interrupted in between is repeated. Until then the evidence stops the books.
- An apart cell notes that home's queue has an order. If home has lost it, the cell forgets that, so the payer
  finds the order again. Nothing was signed for it: the cell knows when it is taken up.

Statements are in `frozen_orders.sql`. All raise `psycopg.Error`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.signer_record import find_merchants
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import Queries
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.rules.withdrawals import PROCESSING
from merchant_wallet.chains.keys.signing_journal import SignedPayment

QUERIES: Final = Queries(Path(__file__).with_name("frozen_orders.sql"))
SIGNED_MORE: Final = "the signer signed more for it than this database knows: it may have been paid"
NO_PAYOUT: Final = "it is being paid, and home does not know its payout: it may have been paid"
NO_RECORD: Final = "the database was rolled back and the signer's record was not there: it may have been paid"

Connection = AsyncConnection[Any]


class OpenOrder(NamedTuple):
    """An order that has not ended, as its cell has it."""

    merchant_id: int
    order_id: int
    chain: str
    status: int
    is_approved: bool


Suspected = dict[str, list[OpenOrder]]
"""Orders by why they may have been paid."""


async def freeze_orders(
    databases: Databases,
    payments: Sequence[SignedPayment],
    now_ms: int,
    *,
    all_open: bool,
) -> Suspected:
    """Freeze, in their cells, the open orders with more signatures than home has, or all open orders.

    Orders that an apart cell is having paid are frozen too, if home has no payout for them.
    """
    keys = await _list_signed_more(databases.home, payments)
    suspected: Suspected = {SIGNED_MORE: [], NO_PAYOUT: [], NO_RECORD: []}
    for cell in databases.cells:
        signed = await _list(cell, "list_open_of", keys)
        is_apart = cell is not databases.home
        open_orders = set(await _list(cell, "list_open", {}) if is_apart or all_open else []) - set(signed)
        missing = await _find_without_payout(databases.home, open_orders) if is_apart else set()
        unknown = {order for order in missing if order.status == PROCESSING}
        await _forget_queued(cell, missing - unknown)
        others = open_orders - unknown if all_open else set()
        suspected[SIGNED_MORE] += signed
        suspected[NO_PAYOUT] += sorted(unknown)
        suspected[NO_RECORD] += sorted(others)
        frozen = sorted({*signed, *unknown, *others})
        for merchant_id, orders in groupby(frozen, lambda order: order.merchant_id):
            await frozen_orders.freeze(cell, merchant_id, [order.order_id for order in orders], now_ms)
    return suspected


async def freeze_payouts(home: Connection, suspected: Suspected, now_ms: int) -> tuple[int, ...]:
    """Freeze these orders' payouts in home. Returns the ids of those that were not frozen before."""
    frozen: set[int] = set()
    for cause, orders in suspected.items():
        merchant_ids, order_ids, chains, statuses, approved = _make_columns(orders)
        values = {
            "merchant_ids": merchant_ids,
            "order_ids": order_ids,
            "chains": chains,
            "statuses": statuses,
            "approved": approved,
            "cause": cause,
            "now_ms": now_ms,
        }
        rows = await (await home.execute(QUERIES["freeze"].text, values)).fetchall()
        frozen |= {order_id for (order_id,) in rows}
    return tuple(sorted(frozen))


async def _list_signed_more(home: Connection, payments: Iterable[SignedPayment]) -> dict[str, list[int]]:
    """The merchants and ids of the orders for which more was signed than home has."""
    orders = [one for one in payments if not one.is_cold]
    signed = Counter(order_id for order_id, _ in {(one.payout_id, one.digest) for one in orders})
    owners = await find_merchants(home, list(signed))
    known = {order_id: merchant_id for order_id, merchant_id in owners.items() if merchant_id is not None}
    values = {
        "merchant_ids": list(known.values()),
        "order_ids": list(known),
        "counts": [signed[order_id] for order_id in known],
    }
    rows = await (await home.execute(QUERIES["list_signed_less"].text, values)).fetchall()
    less = [order_id for (order_id,) in rows]
    return {"merchant_ids": [known[order_id] for order_id in less], "order_ids": less}


async def _find_without_payout(home: Connection, orders: set[OpenOrder]) -> set[OpenOrder]:
    """Those of these orders that have no payout in home."""
    merchant_ids, order_ids, *_ = _make_columns(list(orders))
    values = {"merchant_ids": merchant_ids, "order_ids": order_ids}
    rows = await (await home.execute(QUERIES["list_without_payout"].text, values)).fetchall()
    without = {order_id for (order_id,) in rows}
    return {order for order in orders if order.order_id in without}


async def _forget_queued(cell: Connection, orders: set[OpenOrder]) -> None:
    merchant_ids, order_ids, *_ = _make_columns(sorted(orders))
    values = {"merchant_ids": merchant_ids, "order_ids": order_ids}
    await cell.execute(QUERIES["forget_queued"].text, values)


async def _list(cell: Connection, query: str, values: dict[str, Any]) -> list[OpenOrder]:
    rows = await (await cell.execute(QUERIES[query].text, values)).fetchall()
    return [OpenOrder(*row) for row in rows]


def _make_columns(orders: Sequence[OpenOrder]) -> list[list[Any]]:
    return [[order[place] for order in orders] for place in range(len(OpenOrder._fields))]
