"""Whether a person may approve a merchant's order now, besides the rules of the book.

Rules:
- Who made a key or a secret of a merchant could order in its name (`merchants.staff_secrets`). So that
  person's approvals of this merchant's orders do not count for a time. The book, the payer and verification
  hold to it as to `waits`.
- It does not hold while the platform has no other active owner or operator: nobody else could approve.
- One person approves at most a given sum on a UTC day, over all merchants. The sum is counted in the
  transaction that waits for the book. What the book refuses does not count, nor an order that was approved
  before. What the book may have done counts.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from merchant_wallet.audit.records import Hold
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.outcomes import OrderRefusal
from merchant_wallet.book.rules.approvals import Approvable
from merchant_wallet.operators.records import Connection

QUERIES: Final = Queries(Path(__file__).with_name("order_approvals.sql"))
KEPT_DAYS: Final = 7
DAY_LIMIT: Final = Refusal(
    42202,
    "actor: you would approve more than one person may on a day; another person must approve it",
    name=OrderRefusal.DAY_LIMIT,
)


async def read_eligible_ms(conn: Connection, actor: str, merchant_id: int) -> int:
    """The time from which a person's approvals of a merchant's orders count; 0 if always."""
    return (await list_eligible_ms(conn, actor, [merchant_id]))[merchant_id]


async def list_eligible_ms(conn: Connection, actor: str, merchant_ids: Collection[int]) -> dict[int, int]:
    """The same for each of these merchants."""
    values = {"actor": actor, "merchant_ids": list(set(merchant_ids))}
    rows = await (await conn.execute(QUERIES["list_order_eligible_ms"].text, values)).fetchall()
    return {int(merchant_id): int(eligible_ms) for merchant_id, eligible_ms in rows}


def make_count(actor: str, order: Approvable, *, at_ms: int, limit_units: int | None) -> Hold:
    """What counts an approval, in the transaction that waits for the book.

    `order` is as it was before. It raises Refused above the day's limit.
    """
    day = at_ms // DAY_MS
    values = {"actor": actor, "day": day, "units": order.amount_units, "kept_day": day - KEPT_DAYS}

    async def count(conn: Connection) -> None:
        if limit_units is None or order.approved_by is not None:
            return
        row = await (await conn.execute(QUERIES["count_approval"].text, values)).fetchone()
        assert row is not None, "an upsert that returns"
        if row[0] > limit_units:
            so_far, most = format_units(row[0] - order.amount_units), format_units(limit_units)
            raise Refused(
                DAY_LIMIT.with_figures(
                    f"this order has {format_units(order.amount_units)} USDT, you have approved {so_far} USDT"
                    f" today, and {most} USDT are allowed"
                )
            )

    return count
