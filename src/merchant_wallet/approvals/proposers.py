"""Whether the proposer of an open proposal could still propose it.

Rules:
- A proposer who was disabled meanwhile, or whose waiting period began again, could not.
- An operator at the console needs a role that may propose it. At the terminal no role is needed.
- A person without an operator's account exists only at the terminal, and always could.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.approvals.decisions import Decidable
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("proposers.sql"))
_CONSOLE: Final = "operator:"


async def may_still_propose(conn: AsyncConnection[Any], proposal: Decidable, roles: Collection[str]) -> bool:
    """Whether the proposer could still propose it. `roles` are the roles that may."""
    values = {"actor": proposal.proposed_by, "proposed_ms": proposal.proposed_ms}
    row = await (await conn.execute(QUERIES["read_proposer"].text, values)).fetchone()
    if row is None:
        return True
    is_active, role, waits_anew = row
    is_from_console = proposal.proposed_by.startswith(_CONSOLE)
    return is_active and not waits_anew and (role in roles or not is_from_console)
