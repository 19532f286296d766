"""What blocks payouts: stops of chains, frozen wallets, frozen orders, and obstacles.

Rules:
- A page counts at most `MAX_COUNTED` orders.
- With a merchant's id, only what concerns that merchant's open orders is returned.
- Causes and actors are internal to the platform. A page for merchants leaves them out.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.chains import DEFAULT_CODES
from merchant_wallet.base.db import Queries
from merchant_wallet.book.rules.withdrawals import FAILED
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("payout_blockers.sql"))
MAX_COUNTED: Final = 1_000

STOP: Final = "stop"
WALLET: Final = "wallet"
ROLLBACK: Final = "rollback"
FROZEN: Final = "frozen"


class PayoutBlocker(msgspec.Struct, frozen=True):
    """One reason why payouts of a chain do not go on.

    `kind`: `stop` and `wallet` keep the whole chain from signing. `rollback` blocks every order. `frozen`
    counts orders that wait for an operator. Any other kind is an obstacle, with the number of orders that
    wait for it. `since_ms` is the earliest time, and `cause` belongs to it.
    """

    kind: str
    chain: str
    actor: str
    cause: str
    since_ms: int
    orders: int

    @property
    def stops_chain(self) -> bool:
        """Whether nothing new is signed on the chain."""
        return self.kind in (STOP, WALLET, ROLLBACK)


class Queued(msgspec.Struct, frozen=True):
    """How many approved orders of a chain wait to be paid."""

    chain: str
    orders: int
    amount_units: int


async def list_blockers(
    home: Connection,
    cells: Reach,
    merchant_id: int | None = None,
    *,
    chains: Sequence[str] = DEFAULT_CODES,
) -> tuple[PayoutBlocker, ...]:
    """What blocks payouts, oldest first. `chains` are those that a rollback stops."""
    if merchant_id is None:
        name, values = "list_blockers", {"chains": list(chains), "most": MAX_COUNTED}
    else:
        name = "list_blockers_of_merchant"
        values = await cells.ask_one(partial(_read_open_orders, merchant_id), merchant_id)
    return tuple([PayoutBlocker(**row) for row in await fetch(home, QUERIES[name].text, values)])


async def _read_open_orders(merchant_id: int, cell: Connection) -> dict[str, Any]:
    """A merchant's open orders and their chains."""
    where = {"merchant_id": merchant_id, "most": MAX_COUNTED}
    opened = await fetch(cell, QUERIES["list_open_orders"].text, where)
    return {
        "merchant_id": merchant_id,
        "order_ids": [row["order_id"] for row in opened],
        "open_chains": sorted({row["chain"] for row in opened}),
        "unpaid_chains": sorted({row["chain"] for row in opened if row["status"] < FAILED}),
    }


async def count_queued(cells: Reach, chains: list[str]) -> list[Queued]:
    """The approved orders that no worker has taken up, by chain."""
    values = {"chains": chains, "most": MAX_COUNTED}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["count_queued"].text, values))
    rows = [row for answer in found for row in answer]
    return [_add_queued(chain, [row for row in rows if row["chain"] == chain]) for chain in sorted(chains)]


def _add_queued(chain: str, rows: Sequence[Row]) -> Queued:
    return Queued(chain, sum(row["orders"] for row in rows), sum(int(row["amount_units"]) for row in rows))
