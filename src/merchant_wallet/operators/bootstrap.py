"""The first operator: an owner that the first start creates.

Rules: it is created only if there is no operator. A lock makes sure that only one of several starts creates
it. Its password is shown once, to the person who starts the service.
"""

from typing import Final

from merchant_wallet.audit.records import Author
from merchant_wallet.operators import access
from merchant_wallet.operators.records import QUERIES, Connection, NewOperator, create
from merchant_wallet.operators.roles import Role

FIRST_NAME: Final = "admin"
ACTOR: Final = "up"


async def ensure_first(conn: Connection, at_ms: int) -> NewOperator | None:
    """Create the first owner if there is no operator. Returns None if there is one."""
    if await _is_any(conn):
        return None
    async with conn.transaction():
        await conn.execute(QUERIES["lock_first"].text)
        if await _is_any(conn):
            return None
        made = await create(conn, FIRST_NAME, Role.OWNER, at_ms=at_ms)
        await access.record_creation(conn, Author(ACTOR, "terminal", at_ms), made.operator)
    return made


async def _is_any(conn: Connection) -> bool:
    return await (await conn.execute(QUERIES["find_any"].text)).fetchone() is not None
