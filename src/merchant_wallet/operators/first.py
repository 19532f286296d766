"""The very first operator, an owner whom the first start makes.

Rules: only where there is no operator at all, and under a lock, so that of several starts one makes it. Its
password is given once, to whoever started the service.
"""

from typing import Final

from merchant_wallet.audit import records as audit
from merchant_wallet.operators.records import QUERIES, Connection, NewOperator, create
from merchant_wallet.operators.roles import Role

FIRST_NAME: Final = "admin"
ACTOR: Final = "up"


async def ensure_first(conn: Connection, at_ms: int) -> NewOperator | None:
    """Make the first owner where there is no operator; None where there is one."""
    if await _is_any(conn):
        return None
    async with conn.transaction():
        await conn.execute(QUERIES["lock_first"].text)
        if await _is_any(conn):
            return None
        made = await create(conn, FIRST_NAME, Role.OWNER, at_ms=at_ms)
        await audit.append(
            conn,
            actor=ACTOR,
            action="operator.create",
            subject=f"operator {FIRST_NAME}",
            after={"name": FIRST_NAME, "role": Role.OWNER.value},
            source="terminal",
            at_ms=at_ms,
        )
    return made


async def _is_any(conn: Connection) -> bool:
    return await (await conn.execute(QUERIES["find_any"].text)).fetchone() is not None
