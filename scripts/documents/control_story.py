"""The story's control actions of the sandbox: money from a tap, a deposit that waits, two orders, a callback.

Rules: the workers that an action waits for run beside it, at times that are the same in each run. The name of
the waiting deposit's transaction is random elsewhere, and fixed here.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeVar
from unittest.mock import patch

from scripts.documents.story_payer import open_payer

from merchant_wallet.api.reference.sandbox_controls import EXAMPLES, SANDBOX
from merchant_wallet.base import db
from merchant_wallet.processes.base import Base

LOOK_S: Final = 0.02
LOOK_MS: Final = 60_000
MAX_LOOKS: Final = 20
IS_ENDED: Final = """
select 1 from sandbox_transfer t join payout_signed s on s.tx_hash = t.tx_hash
 where s.order_id = %s and t.final_ms <= %s
"""
RECIPIENT: Final = "0x00000000000000000000000000000000000057a1"
"""The recipient whose transfer stays in 1 until somebody advances its order."""

NOTIFY_URL: Final = "https://example.com/orders"

T = TypeVar("T")


class Clock(Protocol):
    """The story's clock, which the story moves."""

    now_ms: int

    def __call__(self) -> int: ...


class Call(Protocol):
    """How the story's merchant calls: an operation or an action, the beginning of its path, its fields."""

    def __call__(self, operation: str, /, *, start: str = ..., **own: Any) -> Coroutine[Any, Any, Any]: ...


async def play_controls(base: Base, call: Call, clock: Clock, event_id: str) -> list[Any]:
    """Every action that gives one answer, as an example. `event_id` is a callback of the merchant."""

    async def act(action: str, **own: Any) -> Any:
        return await call(action, start=SANDBOX, **{**EXAMPLES[action], **own})

    async def act_on_order(action: str) -> Any:
        created = await call(
            "createMerchantWithdrawOrder",
            amount="10",
            chainType="ERC20",
            currency="USDT",
            mcOrderId=f"{action}-1",
            address=RECIPIENT,
            notifyUrl=NOTIFY_URL,
        )
        order_id = created.data["orderId"]
        return await _do_while_paying(base, clock, order_id, act(action, orderId=order_id))

    examples = [await act("fund")]
    with patch("secrets.token_hex", lambda length: "5b" * length):
        examples.append(await act("deposit"))
    tx_hash = examples[-1].data["txHash"]
    examples += [await act("reorganise", txHash=tx_hash), await act("confirm", txHash=tx_hash)]
    examples += [await act_on_order("advance"), await act_on_order("fail")]
    examples += [await act(action, event=event_id) for action in ("resendCallback", "acceptCallback")]
    return examples


async def _do_while_paying(base: Base, clock: Clock, order_id: int, acting: Coroutine[Any, Any, T]) -> T:
    """Do what ends an order. The payer has sent its transfer before, and looks at it when it has ended."""
    async with open_payer(base, clock) as payer:
        await payer.start_due()
        await payer.finish()
        task = asyncio.create_task(acting)
        await _wait_for_end(base, clock, order_id)
        # Each look has the same time in every run, whenever the action sees what came of it.
        began_ms = clock.now_ms
        for turn in range(1, MAX_LOOKS):
            if task.done():
                break
            clock.now_ms = began_ms + turn * LOOK_MS
            await payer.start_due()
            await payer.finish()
            await asyncio.sleep(LOOK_S)
        clock.now_ms = began_ms + MAX_LOOKS * LOOK_MS
        return await task


async def _wait_for_end(base: Base, clock: Clock, order_id: int) -> None:
    """Wait until the sandbox's chain knows how the order's transfer ends."""
    async with await db.connect(base.url) as connection:
        ended: Any = None
        while not ended:
            await asyncio.sleep(LOOK_S)
            cursor = await connection.execute(IS_ENDED, (order_id, clock()))
            ended = await cursor.fetchone()
