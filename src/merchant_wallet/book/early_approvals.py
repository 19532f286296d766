"""Early approvals: given by people whose approvals did not count yet.

New, reset, enabled or promoted operators wait. The payer checks one order before its payment begins and at
each attempt. Verification checks a whole book. The statement is in `early_approvals.sql`. Raises
`psycopg.Error`.
"""

from pathlib import Path
from typing import Any, Final

import psycopg

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("early_approvals.sql"))
_TEXT: Final = QUERIES["find_early_approval"].text.encode()


async def find_early_approval(
    database: psycopg.AsyncConnection[Any] | psycopg.AsyncCursor[Any],
    merchant_id: int,
    first_id: int,
    last_id: int,
) -> tuple[int, str] | None:
    """The first order between two ids that was approved too early, and who approved it. None without one."""
    values = {"merchant_id": merchant_id, "first_id": first_id, "last_id": last_id}
    row = await (await database.execute(_TEXT, values)).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))
