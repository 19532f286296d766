"""An operator ends a sweep that can't go on. Workers end most of them themselves (`stalls`).

Rules:
- A sweep is ended only while nothing that was signed for its present transaction can count. Otherwise the
  text says what would help. If only one node is configured, what it shows of its blocks is enough here.
- One that a worker has ended as failed is ended by the person, too: it was looked at, and waits in no inbox.
- What was sent and burnt stays in the sweep's row. Coin and token stay at the address, for the next sweep.
"""

from collections.abc import Mapping

from psycopg import AsyncConnection

from merchant_wallet.approvals.acts.kinds import END_SWEEP, format_sweep
from merchant_wallet.audit.records import Author, Hold, hold_nothing
from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.protocol import Expired, Pending
from merchant_wallet.chains.sweeps import Sweeper
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.store import Sweep, SweepMovedOn, SweepShown


class NotEnded(Exception):
    """The sweep was not ended. The text says why."""


async def end_sweep(
    connection: AsyncConnection,
    author: Author,
    sweepers: Mapping[str, Sweeper],
    sweep_id: int,
    *,
    actor: str,
    reason: str,
    also: Hold = hold_nothing,
) -> None:
    """End an open or a failed sweep as failed, with its record. Raises NotEnded, ChainAway.

    `sweepers` need no key. A chain without one is enough if nothing was signed. `actor` is who wanted it.
    `also` is called in the same transaction.
    """
    sweep = await _find(connection, sweep_id)
    facts = {"chain": sweep.chain, "address": format_address(sweep.chain, sweep.address)}
    if isinstance(sweep, SweepShown):
        async with connection.transaction():
            if not await store.settle_failed(connection, sweep, actor):
                raise NotEnded(f"it has ended before: {sweep.cause or sweep.step}")
            await author.record(connection, END_SWEEP, format_sweep(sweep_id), after=facts)
            await also(connection)
        return
    signed = await store.read_signed(connection, sweep)
    if signed:
        sweeper = sweepers.get(sweep.chain)
        if sweeper is None:
            raise NotEnded("its transaction is signed, and no node here can say whether it may still count")
        verdict = await sweeper.judge(sweep.sweep_tx, signed)
        # A person may go by what the only node shows: all of it moves to addresses of ours or of the owner's.
        if isinstance(verdict, Pending) and not await sweeper.has_lapsed(signed):
            raise NotEnded(
                f"its transaction {signed[-1].tx_hash} is signed and may still count: wait until it is "
                "final, or has expired and all nodes answer; if its address lacks coin for the fee, send "
                "some there"
            )
        if not isinstance(verdict, Expired | Pending):
            raise NotEnded(f"its transaction is final: {verdict}; a worker ends it")
    try:
        async with connection.transaction():
            cause = f"{actor} ended it: {reason}"
            await store.fail(connection, sweep, cause, None, author.at_ms, ended_by=actor)
            await author.record(connection, END_SWEEP, format_sweep(sweep.sweep_id), after=facts)
            await also(connection)
    except SweepMovedOn as error:
        raise NotEnded("a worker took it further at this moment: look at it again") from error


async def _find(connection: AsyncConnection, sweep_id: int) -> Sweep | SweepShown:
    """The sweep to go on with if it is open, else as it has ended."""
    shown = await store.list_sweeps(connection, sweep_id=sweep_id)
    if not shown:
        raise NotEnded(f"there is no sweep {sweep_id}")
    found = [one for one in await store.list_open(connection, shown[0].chain) if one.sweep_id == sweep_id]
    if found:
        return found[0]
    if shown[0].ended_ms is None:
        raise NotEnded("the database was rolled back, so no sweep changes")
    return shown[0]
