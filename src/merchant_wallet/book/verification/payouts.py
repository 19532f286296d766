"""Compares home's payouts with the orders of a book.

No foreign key can do that: the orders may be in another database. Home has a payout only after the order
exists, and closes it only after the order has ended. So home is read first, and the book outside its
snapshot.
"""

from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.home import PayoutRow, page_payouts
from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING
from merchant_wallet.book.verification.violations import raise_violation

QUERIES: Final = Queries(Path(__file__).with_name("payouts.sql"))
OPEN_STATUSES: Final = frozenset({PENDING, PROCESSING, FAILED})


async def check_payouts(
    home: AsyncConnection, cell: AsyncConnection, merchant_id: int, page_rows: int
) -> None:
    """Compare all payouts of a merchant, page by page. Raises ViolationFound (rule `payout`)."""
    after = 0
    while payouts := await page_payouts(home, merchant_id, after, page_rows):
        where = {"merchant_id": merchant_id, "order_ids": [payout.order_id for payout in payouts]}
        rows = await (await cell.execute(QUERIES["list_orders"].text, where)).fetchall()
        orders = {order_id: (chain, status) for order_id, chain, status in rows}
        for payout in payouts:
            _check_payout(payout, *orders.get(payout.order_id, (None, None)))
        after = payouts[-1].order_id


def _check_payout(payout: PayoutRow, chain: str | None, status: int | None) -> None:
    if chain != payout.chain:
        found = "no such order" if chain is None else f"an order on {chain}"
        text = f"its payout is on {payout.chain}, the book has {found}"
        raise_violation("payout", text, order_id=payout.order_id)
    if payout.is_closed and status in OPEN_STATUSES:
        raise_violation("payout", f"its payout is closed, its status is {status}", order_id=payout.order_id)
