"""The story's control actions of the sandbox: money from a tap, two deposits, three orders, a callback.

Rules: the workers that an action waits for run beside it, at times that are the same in each run. The name of
the waiting deposit's transaction is random elsewhere, and fixed here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, LiteralString, Protocol, TypeVar
from unittest.mock import patch

from scripts.documents.story_payer import open_payer

from merchant_wallet.api.reference.sandbox_controls import EXAMPLES, SANDBOX
from merchant_wallet.base import db
from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.money import UNITS_PER_COIN
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.screening import PLAYED
from merchant_wallet.sandbox.actions.deposits import SENDERS
from merchant_wallet.sandbox.payouts import name_freeze
from merchant_wallet.screening.facts import DepositFacts
from merchant_wallet.screening.screener import Screener

LOOK_S: Final = 0.02
LOOK_MS: Final = 60_000
MAX_LOOKS: Final = 20
IS_ENDED: Final = """
select 1 from sandbox_transfer t join payout_signed s on s.tx_hash = t.tx_hash
 where s.order_id = %s and t.final_ms <= %s
"""
IS_MARKED: Final = "select 1 from sandbox_count where name = %s"
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

    async def create(action: str) -> int:
        created = await call(
            "createMerchantWithdrawOrder",
            amount="10",
            chainType="ERC20",
            currency="USDT",
            mcOrderId=f"{action}-1",
            address=RECIPIENT,
            notifyUrl=NOTIFY_URL,
        )
        return int(created.data["orderId"])

    async def end(action: str) -> Any:
        order_id = await create(action)
        return await _do_while_paying(
            base, clock, act(action, orderId=order_id), partial(_wait_for_end, base, clock, order_id)
        )

    async def freeze() -> Any:
        order_id = await create("freeze")
        freezing = act("freeze", orderId=order_id)
        return await _do_while_paying(base, clock, freezing, partial(_wait_for_mark, base, order_id))

    examples = [await act("fund")]
    with patch("secrets.token_hex", lambda length: "5b" * length):
        examples.append(await act("deposit"))
    tx_hash = examples[-1].data["txHash"]
    examples += [await act("reorganise", txHash=tx_hash), await act("confirm", txHash=tx_hash)]
    held = await act("deposit", finality="auto", screening="hold")
    await _screen(base, clock, held.data)
    examples.append(await act("release", txHash=held.data["txHash"]))
    examples += [await end("advance"), await end("fail"), await freeze()]
    examples += [await act(action, event=event_id) for action in ("resendCallback", "acceptCallback")]
    return examples


async def _screen(base: Base, clock: Clock, deposit: Mapping[str, Any]) -> None:
    """Screen a deposit, as the worker that would credit it does."""
    chain, recipient = deposit["chainType"], parse_address(deposit["chainType"], deposit["address"])
    async with await db.connect(base.url) as home:
        found = await home.execute("select merchant_id from issued_address where address = %s", (recipient,))
        [(merchant_id,)] = await found.fetchall()
        amount_units = round(deposit["amount"] * UNITS_PER_COIN)
        facts = DepositFacts(
            merchant_id, chain, deposit["txHash"], 0, SENDERS["hold"], recipient, amount_units
        )
        await Screener(played=PLAYED, clock=clock).screen_deposit(home, facts)


async def _do_while_paying(
    base: Base, clock: Clock, acting: Coroutine[Any, Any, T], wait: Callable[[], Awaitable[None]]
) -> T:
    """Do what changes an order. The payer has sent its transfer before, and looks again after `wait`."""
    async with open_payer(base, clock) as payer:
        await payer.start_due()
        await payer.finish()
        task = asyncio.create_task(acting)
        await wait()
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
    await _wait_for_row(base, IS_ENDED, lambda: (order_id, clock()))


async def _wait_for_mark(base: Base, order_id: int) -> None:
    """Wait until the payer is asked to freeze the order."""
    await _wait_for_row(base, IS_MARKED, lambda: (f"mark {name_freeze(order_id)}",))


async def _wait_for_row(base: Base, query: LiteralString, values: Callable[[], tuple[Any, ...]]) -> None:
    async with await db.connect(base.url) as connection:
        found: Any = None
        while not found:
            await asyncio.sleep(LOOK_S)
            found = await (await connection.execute(query, values())).fetchone()
