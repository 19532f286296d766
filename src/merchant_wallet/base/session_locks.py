"""Advisory locks that a command holds as long as its session lives, so that it runs once at a time.

Rules:
- A lock ends with its session. The server may notice a moment later that a client was killed, so whoever
  wants the lock tries again for `PATIENCE_S`.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection

PATIENCE_S: Final = 2.0
PAUSE_S: Final = 0.05


async def take_lock(
    connection: AsyncConnection[Any], statement: str, values: Mapping[str, int] | None = None
) -> bool:
    """Run a statement that tries a lock until it gets it. False if another session keeps it.

    Raises `psycopg.Error`.
    """
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        if await (await connection.execute(statement.encode(), values)).fetchone() == (True,):
            return True
        if time.monotonic() > ends_s:
            return False
        await asyncio.sleep(PAUSE_S)
