"""Refunds of failed orders that wait for a test. This is the worker side: the payer asks before each."""

from collections.abc import Callable
from typing import Final

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.chains.sandbox.recipients import FAILED_HELD
from merchant_wallet.sandbox import store
from merchant_wallet.withdrawals.attempt import FindRefundRest

LOOK_MS: Final = 500
LOOK_PART: Final = 8
MAX_LOOK_MS: Final = 50_000


def make_refund_rest(home: WorkerConnection, clock: Callable[[], int]) -> FindRefundRest:
    """Says how long a refund rests: a while if a test or the recipient holds it, else not at all."""

    async def find_rest(failed: Withdrawal, merchant_id: int) -> int:
        connection = await home.get()
        said = await store.run(connection, "find_refund", merchant_id=merchant_id, order_id=failed.order_id)
        is_held = said[0][0] if said else parse_address(failed.chain, failed.address) == FAILED_HELD
        age_ms = clock() - failed.created_ms
        return min(MAX_LOOK_MS, max(LOOK_MS, age_ms // LOOK_PART)) if is_held else 0

    return find_rest
