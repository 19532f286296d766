"""The steps of a transfer that need no signer: send, drop, and judge what is signed or made elsewhere.

Rules:
- Anybody who has the exported bytes may sign and broadcast them, at any time. So the worker asks the chain as
  long as they wait, and before it drops the transfer. What the chain shows is the answer.
- Bytes that came back signed are judged by their hash first. Nodes answer that without old state.
- An exported nonce of the hot wallet is never free again. To drop its transfer, the worker has the nonce
  cancelled. The transfer ends when the chain has used the nonce, by the cancellation or by the transfer.
- Another transaction with such a nonce freezes the hot wallet, because somebody else has its key.
- A single node may delay the end of a transfer, but not for ever. Without an exported nonce a drop waits at
  most until the time to sign is over, because nothing of ours conflicts with a late transaction.
- A recorded transfer reserves nothing. A drop ends it unless it is final.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import structlog

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.money import format_units
from merchant_wallet.base.workers import WorkerConnection, describe_error, log_failure
from merchant_wallet.chains.cold import ColdChain, Executed, InFlight, Replaced, read_moved
from merchant_wallet.chains.protocol import Blocked, ChainDisagrees, SignedTransfer, TokenTransfer
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.store import ColdTransfer

HOT_SIGNATURE_MS: Final = 1_800_000
"""The hot wallet's nonce waits this long for a signature from elsewhere."""
COLD_SIGNATURE_MS: Final = 43_200_000

NOT_SIGNED: Final = "it was not signed in time"
WORKER: Final = "worker"
"""Who drops what was not signed in time."""

log = structlog.get_logger(__name__)


class TransferSteps:
    """The steps, each on the worker's connection."""

    def __init__(self, worker_connection: WorkerConnection, clock: Callable[[], int]) -> None:
        self._worker_connection = worker_connection
        self._clock = clock

    async def note(self, one: ColdTransfer, obstacle: str | None) -> None:
        """Store and log why a transfer waits. None if it does not."""
        if obstacle != one.obstacle:
            if obstacle is not None:
                log.warning("cold transfer waits", **describe(one), cause=obstacle)
            await store.note_obstacle(await self._worker_connection.get(), one, obstacle)

    async def send(self, broadcast: Awaitable[None], one: ColdTransfer) -> str | None:
        """Why the nodes do not take it, if they don't. It proves nothing: the same bytes are sent again."""
        try:
            await broadcast
        except Exception as error:
            log_failure(log, "cold transfer broadcast failed", error, **describe(one))
            return f"the nodes do not take it: {describe_error(error)}"
        return None

    async def drop(self, one: ColdTransfer) -> None:
        """End a transfer that somebody drops."""
        connection, now = await self._worker_connection.get(), self._clock()
        cause = NOT_SIGNED if one.drop_asked_by == WORKER else f"given up by {one.drop_asked_by}"
        await store.end(connection, one, store.DROPPED, now, cause=cause)
        log.warning("cold transfer given up", **describe(one), cause=cause)

    async def build_unsigned(self, cold: ColdChain, one: ColdTransfer) -> None:
        """Build the bytes that somebody signs elsewhere. Raises Blocked."""
        connection = await self._worker_connection.get()
        lifetime_ms = HOT_SIGNATURE_MS if one.leaves_hot else COLD_SIGNATURE_MS
        try:
            made = await cold.build_unsigned(one.sender, one.transfer, one.nonce, lifetime_ms)
        except Blocked:
            await store.release(connection, one, self._clock())
            raise
        until_ms = self._clock() + lifetime_ms
        await store.store_unsigned(connection, one, made.unsigned, made.built_at_block, until_ms)
        log.info("cold transfer waits for a signature", **describe(one))

    async def follow_exported(
        self, cold: ColdChain, one: ColdTransfer, signed: SignedTransfer | None
    ) -> None:
        """Send what came back signed, look for the exported bytes on the chain, end or drop the transfer."""
        refused = None
        if signed is not None:
            if one.drop_asked_by is None:
                refused = await self.send(cold.broadcast(signed.raw), one)
            if await self._judge_moved(cold, one, signed.tx_hash):
                return
        match await cold.find_execution(one.sender, one.exported):
            case Executed(tx_hash=tx_hash):
                if not await self._judge_moved(cold, one, tx_hash):
                    await self.note(one, f"{tx_hash} is this transfer, and too few nodes call it final yet")
            case Replaced(tx_hash=tx_hash):
                await self._end_replaced(one, tx_hash)
            case InFlight() as in_flight:
                await self._wait(one, in_flight, refused)
            case None if one.drop_asked_by is not None:
                await self._drop_exported(one)
            case None if signed is None and self._is_overdue(one):
                await self._drop_exported(await self._ask_drop(one))
            case None:
                await self.note(one, refused)

    async def end_with_other_fees(
        self, cold: ColdChain, one: ColdTransfer, signed: Sequence[SignedTransfer]
    ) -> None:
        """End a transfer of the hot wallet that a program sent with other fees than were brought back."""
        found = await cold.find_execution(one.sender, one.exported)
        if isinstance(found, Executed) and found.tx_hash not in {each.tx_hash for each in signed}:
            await self._judge_moved(cold, one, found.tx_hash)

    async def judge_recorded(self, cold: ColdChain, one: ColdTransfer) -> None:
        """End a transfer that was made elsewhere by what it moved, once that is final."""
        if one.tx_hash is None:
            raise AssertionError("what is recorded has a hash")
        try:
            if await self._judge_moved(cold, one, one.tx_hash):
                return
        except ChainDisagrees:
            if one.drop_asked_by is None:
                raise
        if one.drop_asked_by is not None:
            await self.drop(one)
        elif await cold.knows(one.tx_hash):
            await self.note(one, None)
        else:
            text = f"no node knows {one.tx_hash}: is the hash right?"
            await self.note(one, f"{text} If not, give this transfer up and record the right one")

    async def _judge_moved(self, cold: ColdChain, one: ColdTransfer, tx_hash: str) -> bool:
        """End a transfer by what a transaction moved. False if that is not final."""
        moved = await read_moved(cold, tx_hash)
        connection, now = await self._worker_connection.get(), self._clock()
        if moved is None:
            return False
        if _is_exact(one, moved):
            await store.end(connection, one, store.DONE, now, tx_hash=tx_hash)
            log.info("cold transfer is final", **describe(one), tx_hash=tx_hash)
        else:
            cause = f"{tx_hash} moved {_describe_moved(one.chain, moved)}, which is not this transfer"
            await store.end(connection, one, store.FAILED, now, cause=cause, tx_hash=tx_hash)
            log.error("cold transfer failed", **describe(one), cause=cause)
        return True

    async def _end_replaced(self, one: ColdTransfer, tx_hash: str) -> None:
        """End a transfer whose nonce another transaction used."""
        connection, now = await self._worker_connection.get(), self._clock()
        if await store.is_cancellation(connection, one, tx_hash):
            await self.drop(one)
            return
        cause = (
            f"cold transfer {one.transfer_id}: its nonce was used by {tx_hash}, which is not this transfer"
        )
        fault = cause if one.leaves_hot else None
        await store.end(connection, one, store.FAILED, now, cause=cause, wallet_fault=fault)
        log.error("cold transfer failed", **describe(one), cause=cause)

    async def _wait(self, one: ColdTransfer, in_flight: InFlight, refused: str | None) -> None:
        """Some node knows a transaction that uses the nonce or has the id, and it is not final."""
        if one.exports_nonce and self._is_overdue(one) and one.drop_asked_by is None:
            # Payouts wait for the nonce. The chain decides between the transfer and the cancellation.
            one = await self._ask_drop(one)
        if one.drop_asked_by is None:
            await self.note(one, refused if one.step == store.SIGNED else in_flight.cause)
        elif one.exports_nonce:
            await self._cancel(one)
            await self.note(one, f"nonce {one.nonce} is being cancelled; {in_flight.cause}")
        elif self._is_overdue(one) and not in_flight.expires:
            await self.drop(one)
        else:
            await self.note(one, f"it is not given up yet: {in_flight.cause}")

    async def _ask_drop(self, one: ColdTransfer) -> ColdTransfer:
        """From here on no signature is taken. Raises TransferMovedOn if one was taken just now."""
        return await store.ask_drop_unsigned(await self._worker_connection.get(), one, WORKER)

    async def _drop_exported(self, one: ColdTransfer) -> None:
        """Drop it, or first have the hot wallet's nonce cancelled."""
        if not one.exports_nonce:
            await self.drop(one)
            return
        await self._cancel(one)
        await self.note(
            one, f"nonce {one.nonce} is being cancelled: until that is final, a signature could still use it"
        )

    async def _cancel(self, one: ColdTransfer) -> None:
        """Have the nonce-gap worker use the hot wallet's nonce. We sign nothing else for it from here on."""
        await store.cancel_nonce(await self._worker_connection.get(), one, self._clock())

    def _is_overdue(self, one: ColdTransfer) -> bool:
        return one.unsigned_until_ms is not None and self._clock() >= one.unsigned_until_ms


def describe(one: ColdTransfer) -> dict[str, object]:
    """A transfer in log lines."""
    return {"chain": one.chain, "transfer_id": one.transfer_id, "direction": one.direction}


def _is_exact(one: ColdTransfer, moved: Sequence[TokenTransfer]) -> bool:
    if len(moved) != 1:
        return False
    [log_line] = moved
    ends = (log_line.sender, log_line.recipient, log_line.amount_units, log_line.remainder)
    return ends == (one.sender, one.transfer.recipient, one.amount_units, 0)


def _describe_moved(chain: str, moved: Sequence[TokenTransfer]) -> str:
    if not moved:
        return "nothing"
    show = partial(format_address, chain)
    return " and ".join(
        f"{format_units(each.amount_units)} from {show(each.sender)} to {show(each.recipient)}"
        for each in moved
    )
