"""Early approvals: given by people whose approvals did not count yet.

New, reset, enabled or promoted operators wait. Who made a merchant's secret waits for its orders, or everyone
does, if a restored home no longer knows who made one. The payer checks one order before its payment begins
and at each attempt. Verification checks a whole book. The statement is in `early_approvals.sql`. Raises
`psycopg.Error`.
"""

from pathlib import Path
from typing import Any, Final

import psycopg

from merchant_wallet.base.db import Queries
from merchant_wallet.book.actors import EVERYONE
from merchant_wallet.book.home import list_waits

QUERIES: Final = Queries(Path(__file__).with_name("early_approvals.sql"))
_TEXT: Final = QUERIES["find_early_approval"].text.encode()


async def find_early_approval(
    home: psycopg.AsyncConnection[Any],
    cell: psycopg.AsyncConnection[Any] | psycopg.AsyncCursor[Any],
    merchant_id: int,
    first_id: int,
    last_id: int,
) -> tuple[int, str] | None:
    """The first order between two ids that was approved too early, and who approved it. None without one."""
    waits = [one for one in await list_waits(home) if one.merchant_id in (None, merchant_id)]
    if not waits:
        return None
    times = [f"[{wait.from_ms},{wait.eligible_ms})" for wait in waits if wait.person == EVERYONE]
    values = {
        "merchant_id": merchant_id,
        "first_id": first_id,
        "last_id": last_id,
        "everyone": f"{{{','.join(times)}}}",
        "persons": [wait.person for wait in waits],
        "from_ms": [wait.from_ms for wait in waits],
        "eligible_ms": [wait.eligible_ms for wait in waits],
    }
    row = await (await cell.execute(_TEXT, values)).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))
