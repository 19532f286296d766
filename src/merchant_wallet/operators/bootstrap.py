"""The first operator: an owner that the first start creates.

Rules: it is created only if there is no operator. A lock makes sure that only one of several starts creates
it. Its password is shown once, to the person who starts the service.
"""

from typing import Final

from merchant_wallet.audit import records as audit
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
