"""Waiting for what workers do, a bounded time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from merchant_wallet.base.codes import UNAVAILABLE, refuse
from merchant_wallet.sandbox.context import SandboxContext

WAIT_S: Final = 10.0
LOOK_S: Final = 0.05


async def looks(context: SandboxContext) -> AsyncIterator[None]:
    """Yield for each look, with a pause between them. Refused 50300 after 10 s or when the process stops."""
    for _ in range(round(WAIT_S / LOOK_S)):
        yield
        if context.is_ending():
            refuse(UNAVAILABLE, "this process stops; ask again", retry_after_s=1)
        await asyncio.sleep(LOOK_S)
    msg = f"the workers have not done it within {WAIT_S:g} s; if they run, ask again"
    refuse(UNAVAILABLE, msg, retry_after_s=1)
