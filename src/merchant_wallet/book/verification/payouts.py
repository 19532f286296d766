"""Compares home's payouts with the orders of a book.

No foreign key can do that: the orders may be in another database. Home has a payout only after the order
exists, and closes it only after the order has ended, or because the order was lost with a copy of the book.
The book must not have such an order. Home freezes a payout after the order, and thaws it before the order. So
home is read first, and the book outside its snapshot. A copy of the book may be behind: it is caught up
before a violation counts.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.home import PayoutRow, is_frozen, page_payouts
from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING
from merchant_wallet.book.verification.violations import ViolationFound, raise_violation

QUERIES: Final = Queries(Path(__file__).with_name("payouts.sql"))
OPEN_STATUSES: Final = frozenset({PENDING, PROCESSING, FAILED})


async def check_payouts(
    home: AsyncConnection,
    cell: AsyncConnection,
    merchant_id: int,
    page_rows: int,
    catch_up: Callable[[], Awaitable[object]],
) -> None:
    """Compare all payouts of a merchant, page by page. Raises ViolationFound (rule `payout`).

    `catch_up` brings the cell to what is committed now (see `verify_book`).
    """
    after = 0
    while payouts := await page_payouts(home, merchant_id, after, page_rows):
        try:
            await _check_page(home, cell, merchant_id, payouts)
        except ViolationFound:
            # Home may be ahead of a copy.
            await catch_up()
            await _check_page(home, cell, merchant_id, payouts)
        after = payouts[-1].order_id


async def _check_page(
    home: AsyncConnection, cell: AsyncConnection, merchant_id: int, payouts: Sequence[PayoutRow]
) -> None:
    where = {"merchant_id": merchant_id, "order_ids": [payout.order_id for payout in payouts]}
    rows = await (await cell.execute(QUERIES["list_orders"].text, where)).fetchall()
    orders = {order_id: tuple(order) for order_id, *order in rows}
    for payout in payouts:
        chain, status, is_marked = orders.get(payout.order_id, (None, None, False))
        _check_payout(payout, chain, status)
        if payout.frozen_ms is not None and status in OPEN_STATUSES and not is_marked:
            await _check_thawed(home, merchant_id, payout.order_id, payout.frozen_ms)


def _check_payout(payout: PayoutRow, chain: str | None, status: int | None) -> None:
    if payout.is_lost:
        if chain is not None:
            raise_violation(
                "payout", "its payout was closed as lost, the book has it", order_id=payout.order_id
            )
        return
    if chain != payout.chain:
        found = "no such order" if chain is None else f"an order on {chain}"
        text = f"its payout is on {payout.chain}, the book has {found}"
        raise_violation("payout", text, order_id=payout.order_id)
    if payout.is_closed and status in OPEN_STATUSES:
        raise_violation("payout", f"its payout is closed, its status is {status}", order_id=payout.order_id)


async def _check_thawed(home: AsyncConnection, merchant_id: int, order_id: int, frozen_ms: int) -> None:
    """An order that is not frozen in its book was thawed after home was read."""
    if await is_frozen(home, merchant_id, order_id, frozen_ms):
        raise_violation("payout", "its payout is frozen, the book may take a step with it", order_id=order_id)
