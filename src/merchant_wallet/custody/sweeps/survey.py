"""What there is to sweep on a chain, and what it would cost. Nothing is changed.

Rules:
- Only the final balance of an address counts, because swept money must not vanish again.
- If the chain can't answer for an address, its line says so. If the chain is down, the survey ends.
"""

from collections.abc import Callable
from typing import Final

from merchant_wallet.base.cells import Databases
from merchant_wallet.chains.protocol import Block, Blocked
from merchant_wallet.chains.sweeps import Sweeper
from merchant_wallet.chains.transport import ask_together
from merchant_wallet.custody.sweeps.plan import SweepCandidate
from merchant_wallet.custody.sweeps.unswept import Unswept, list_unswept

MAX_CONCURRENT: Final = 8
OTHER_CHAIN: Final = "the address was issued for another chain: move the money by hand with its key"

ReportProgress = Callable[[int, int], None]
"""Called with the number of finished addresses and of all addresses."""


async def survey(
    databases: Databases,
    chain: str,
    sweeper: Sweeper,
    *,
    minimum_units: int,
    min_units: int = 1,
    report: ReportProgress = lambda done, total: None,
) -> list[SweepCandidate]:
    """Every address that should hold something, with the chain's balance. Costs from `minimum_units` on.

    Addresses with less than `min_units` of deposits are left out. Raises ChainAway, ChainDisagrees,
    `psycopg.Error`.
    """
    unswept = await list_unswept(databases, chain, min_units)
    if not unswept:
        return []
    final, done = await sweeper.final(), 0

    async def look(one: Unswept) -> SweepCandidate:
        nonlocal done
        found = await _look(chain, sweeper, one, final, minimum_units)
        done += 1
        report(done, len(unswept))
        return found

    return await ask_together(look, unswept, max_concurrent=MAX_CONCURRENT)


async def _look(
    chain: str, sweeper: Sweeper, one: Unswept, final: Block, minimum_units: int
) -> SweepCandidate:
    units = await sweeper.balance(one.address, final)
    quote = blocked_by = None
    if not one.is_native:
        blocked_by = OTHER_CHAIN
    elif units >= max(1, minimum_units):
        try:
            quote = await sweeper.quote(one.address, units)
        except Blocked as blocked:
            blocked_by = str(blocked)
    return SweepCandidate(
        chain, one.address, one.merchant_id, one.source, units, quote, blocked_by, one.failed_cause
    )
