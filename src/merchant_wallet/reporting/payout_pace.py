"""How fast each chain's payouts go: orders and units a day, at the pace of the last week.

Rules:
- It is a pace, not a sum: where a cell paid more than `MAX_SAMPLE` orders, its newest ones and their time
  count.
- Orders are taken by the time when they were asked for.
"""

from collections.abc import Sequence
from itertools import chain as join
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS, WEEK_MS
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import fetch

QUERIES: Final = Queries(Path(__file__).with_name("payout_pace.sql"))
MAX_SAMPLE: Final = 2_000


class Pace(msgspec.Struct, frozen=True):
    """What a chain pays in a day."""

    orders: float = 0.0
    units: int = 0

    def count_days(self, held_units: int) -> float | None:
        """How many days an amount lasts; None if nothing was paid in the last week."""
        return held_units / self.units if self.units else None


async def read_paces(cells: Reach, chains: Sequence[str], now_ms: int) -> dict[str, Pace]:
    """The pace of each chain, over all cells that answer."""
    values = {"chains": list(chains), "since_ms": now_ms - WEEK_MS, "most": MAX_SAMPLE}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES["sample_paid"].text, values))
    paces = dict.fromkeys(chains, Pace())
    for row in join.from_iterable(found):
        is_whole = row["orders"] < MAX_SAMPLE
        span_ms = WEEK_MS if is_whole else max(1, now_ms - row["first_ms"])
        before = paces[row["chain"]]
        paces[row["chain"]] = Pace(
            before.orders + row["orders"] * DAY_MS / span_ms,
            before.units + int(row["units"]) * DAY_MS // span_ms,
        )
    return paces
