"""What tests asked of the payer: refunds that wait, and orders that are frozen. This is the worker side."""

from collections.abc import Callable
from typing import Final

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.chains.sandbox.recipients import FAILED_HELD
from merchant_wallet.sandbox import store

LOOK_MS: Final = 500
LOOK_PART: Final = 8
MAX_LOOK_MS: Final = 50_000
FREEZE_CAUSE: Final = "a test of the sandbox froze it"
"""As it stands in home. `advance` and `fail` thaw no order that was frozen for another cause."""


def name_freeze(order_id: int) -> str:
    """The mark that the payer shall freeze an order."""
    return f"freeze {order_id}"


def name_freeze_of_new(mc_order_id: str) -> str:
    """The mark that the payer shall freeze an order, left before the order exists."""
    return f"freeze new {mc_order_id}"


def _list_marks(order: Withdrawal) -> list[str]:
    return [name_freeze(order.order_id), name_freeze_of_new(order.mc_order_id)]


class SandboxPayouts:
    """The payer asks it before each step (see `withdrawals.attempt.PlayedPayouts`)."""

    def __init__(self, home: WorkerConnection, clock: Callable[[], int]) -> None:
        self._home = home
        self._clock = clock

    async def find_refund_rest(self, merchant_id: int, failed: Withdrawal) -> int:
        """How long a refund rests: a while if a test or the recipient holds it, else not at all."""
        connection = await self._home.get()
        said = await store.run(connection, "find_refund", merchant_id=merchant_id, order_id=failed.order_id)
        is_held = said[0][0] if said else parse_address(failed.chain, failed.address) == FAILED_HELD
        age_ms = self._clock() - failed.created_ms
        return min(MAX_LOOK_MS, max(LOOK_MS, age_ms // LOOK_PART)) if is_held else 0

    async def find_freeze_cause(self, merchant_id: int, order: Withdrawal) -> str | None:
        """The cause if a test asked to freeze the order."""
        is_asked = await store.has_mark(await self._home.get(), merchant_id, _list_marks(order))
        return FREEZE_CAUSE if is_asked else None

    async def note_frozen(self, merchant_id: int, order: Withdrawal) -> None:
        """Take the marks away, so that the order is frozen once."""
        for mark in _list_marks(order):
            await store.take_mark(await self._home.get(), merchant_id, mark)
