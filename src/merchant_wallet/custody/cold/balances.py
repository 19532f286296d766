"""What the cold wallets hold, for reports on solvency: as reconciliation read it last, with its age."""

from typing import Any

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.custody.cold.wallets import list_wallets


class ColdBalance(msgspec.Struct, frozen=True):
    """The balance of one cold wallet at a final block. It is None before the first comparison.

    Retired wallets (`is_current` is False) are still in custody, so their balances count.
    """

    chain: str
    address: bytes
    is_current: bool
    balance_units: int | None
    block_number: int | None
    at_ms: int | None


async def read_cold_balances(connection: AsyncConnection[Any]) -> list[ColdBalance]:
    """The balance of each cold wallet. The connection is home's."""
    return [
        ColdBalance(one.chain, one.address, one.is_current, one.balance_units, one.block_number, one.at_ms)
        for one in await list_wallets(connection)
    ]
