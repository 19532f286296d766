"""Opens the sweep of each rescue that two people decided: how much, what it may burn, and the top-up for it.

Rules:
- The sweep's row is there before anything is signed, and a rescue has one. From there the rules of sweeps
  hold: one nonce once, the same bytes until they are final, the chain's proof alone ends it.
- Each transaction burns at most the chain's fee cap, and a top-up gives at most that.
- A rescue that can't begin ends after `STALLED_MS`, whatever the reason is, and people may decide again. Only
  a sweep of its address is waited for as long as that takes.
"""

from typing import Final

import msgspec
import structlog

from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.base.workers import describe_error, log_failure
from merchant_wallet.chains.protocol import Blocked, Obstacle
from merchant_wallet.chains.sweeps import Quote, Rescue, Sweeper
from merchant_wallet.custody.rescues import store
from merchant_wallet.custody.rescues.store import Connection, Unopened
from merchant_wallet.custody.sweeps.plan import Terms, make_terms
from merchant_wallet.custody.sweeps.stalls import STALLED_MS

BUSY: Final = "a sweep of the address is under way"
TRANSACTIONS: Final = 2
"""The most that a rescue sends at once: the top-up, and what it is for."""

log = structlog.get_logger(__name__)


async def open_rescues(connection: Connection, chain: str, sweeper: Sweeper, now_ms: int) -> int:
    """Open the sweeps of a chain's rescues. Returns how many could not be tried now; each was logged."""
    failed = 0
    for waiting in await store.list_unopened(connection, chain):
        try:
            await _open(connection, sweeper, waiting, now_ms)
        except Blocked as blocked:
            await _wait(connection, waiting, str(blocked), now_ms)
        except Exception as error:
            # One failed rescue stops no other. It is tried again.
            log_failure(log, "rescue not begun", error, chain=chain, rescue_no=waiting.rescue_no)
            # A contract may fail in ways that look like a node's failure, and no person can end this.
            failed += not await _wait(connection, waiting, describe_error(error), now_ms)
    return failed


async def _open(connection: Connection, sweeper: Sweeper, waiting: Unopened, now_ms: int) -> None:
    amount, quote = await _find_amount(sweeper, waiting)
    terms = _make_terms(quote, sweeper.fee_cap)
    number = waiting.rescue_no
    sweep_id = await store.open_sweep(connection, number, sweeper.wallet, amount, terms, now_ms)
    if sweep_id is None:
        await store.note_obstacle(connection, number, BUSY)
        return
    await store.note_obstacle(connection, number, None)
    log.info("rescue begun", rescue_no=number, sweep_id=sweep_id)


async def _find_amount(sweeper: Sweeper, waiting: Unopened) -> tuple[int, Quote]:
    """How much is moved, and what it may cost. Raises Blocked."""
    held = await sweeper.foreign_balance(waiting.address, waiting.contract)
    amount = held if waiting.asked is None else waiting.asked
    if not 0 < amount <= held:
        raise Blocked(Obstacle("funds", f"the address holds {held} of its smallest units of that"))
    takes_all_coin = waiting.contract is None and waiting.asked is None
    # All coin is what is left after the fee of moving it.
    tried = Rescue(waiting.contract, waiting.recipient, 1 if takes_all_coin else amount)
    quote = await sweeper.quote_rescue(waiting.address, tried)
    if not takes_all_coin:
        return amount, quote
    amount = held - quote.token_fee
    if amount <= 0:
        raise Blocked(Obstacle("fee", f"the address holds {held}, and moving it may burn {quote.token_fee}"))
    return amount, msgspec.structs.replace(quote, held=quote.token_fee)


def _make_terms(quote: Quote, fee_cap: int) -> Terms:
    """Raises Blocked if a transaction may burn, or the top-up give, more than the cap."""
    terms = make_terms(quote, TRANSACTIONS * fee_cap, fee_cap)
    if terms is None:
        raise Blocked(Obstacle("fee", f"it may cost more than the chain's fee cap of {fee_cap}"))
    return terms


async def _wait(connection: Connection, waiting: Unopened, obstacle: str, now_ms: int) -> bool:
    """Note why it waits, or end it if that takes too long. Returns whether it waits no more."""
    number, waited_ms = waiting.rescue_no, now_ms - waiting.opened_ms
    if waited_ms >= STALLED_MS:
        cause = f"it could not begin for {waited_ms // MINUTE_MS} minutes: {obstacle}"
        if await store.fail_unopened(connection, number, cause, now_ms):
            log.warning("rescue failed", rescue_no=number, cause=cause)
        return True
    if obstacle != waiting.obstacle:
        log.warning("rescue waits", rescue_no=number, cause=obstacle)
    await store.note_obstacle(connection, number, obstacle)
    return False
