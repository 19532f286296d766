"""Whether the person who proposed something, or asked for an act, still could.

Rules:
- Who was disabled meanwhile, or whose waiting period began again, could not.
- An operator at the console needs a role that may. At the terminal no role is needed.
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
    return await may_still_ask(conn, proposal.proposed_by, proposal.proposed_ms, roles)


async def may_still_ask(conn: AsyncConnection[Any], actor: str, at_ms: int, roles: Collection[str]) -> bool:
    """Whether a person who asked for something at a time still could. `roles` are the roles that may."""
    values = {"actor": actor, "proposed_ms": at_ms}
    row = await (await conn.execute(QUERIES["read_proposer"].text, values)).fetchone()
    if row is None:
        return True
    is_active, role, waits_anew = row
    is_from_console = actor.startswith(_CONSOLE)
    return is_active and not waits_anew and (role in roles or not is_from_console)
