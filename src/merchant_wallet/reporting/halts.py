"""What keeps payouts from going on: stops, frozen wallets, frozen orders, and obstacles.

Rules:
- One query answers for a page. It counts at most `MOST_COUNTED` orders.
- With a merchant's id it tells only what concerns that merchant's open orders.
- Causes and actors are the platform's own. Whoever shows them to a merchant leaves them out.
"""

from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("halts.sql"))
MOST_COUNTED: Final = 1_000

STOP: Final = "stop"
WALLET: Final = "wallet"
ROLLBACK: Final = "rollback"
FROZEN: Final = "frozen"


class Halt(msgspec.Struct, frozen=True):
    """One thing that keeps payouts of a chain from going on.

    `kind`: `stop` and `wallet` keep the whole chain from signing. `rollback` keeps every order of it from
    being worked on. `frozen` counts orders that wait for an operator. Any other is the kind of an obstacle
    and counts the orders that wait for it to pass.
    `since_ms` is the oldest moment, and `cause` is that one's.
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


async def list_halts(conn: Connection, merchant_id: int | None = None) -> tuple[Halt, ...]:
    """What keeps payouts from going on, the oldest first."""
    name = "list_halts" if merchant_id is None else "list_halts_of_merchant"
    values = {"merchant_id": merchant_id, "most": MOST_COUNTED}
    return tuple([Halt(**row) for row in await fetch(conn, QUERIES[name].text, values)])


async def count_queued(conn: Connection, chains: list[str]) -> list[Queued]:
    """The approved orders that nobody has begun to pay, by chain."""
    rows = await fetch(conn, QUERIES["count_queued"].text, {"chains": chains, "most": MOST_COUNTED})
    return [Queued(row["chain"], row["orders"], int(row["amount_units"])) for row in rows]
