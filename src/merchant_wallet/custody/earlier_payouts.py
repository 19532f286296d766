"""Payouts to an address that became a hot wallet later, for example a test withdrawal to the new wallet.

Rules:
- A search finds only what moves after an address is ours. These payouts were searched before, when the
  recipient was a stranger's. So home's reservations tell of them.
- Only what settled its order counts, and nothing that a search has found. What a person has recorded is
  judged as any other movement.
- A cold wallet needs none of this: it counts with what it held.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import Queries
from merchant_wallet.custody.comparison import JudgedMovement, Movement
from merchant_wallet.custody.records import judge_movements

QUERIES: Final = Queries(Path(__file__).with_name("earlier_payouts.sql"))


async def find_earlier_payouts(databases: Databases, chain: str) -> Sequence[JudgedMovement]:
    """The ends at our hot wallets of payouts that went there before. Raises `psycopg.Error`."""
    cursor = await databases.home.execute(QUERIES["list_earlier_payouts"].text, {"chain": chain})
    movements = [
        # The transfer is the only one of its transaction.
        Movement(tx_hash, 0, False, block_number, bytes(sender), bytes(recipient), units)
        for tx_hash, block_number, sender, recipient, units in await cursor.fetchall()
    ]
    recipients = frozenset(each.recipient for each in movements)
    judged = await judge_movements(databases, chain, movements, recipients)
    return [each for each in judged if each.is_settled]
