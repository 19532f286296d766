"""The steps of a transfer that need no signer: send, give up, and judge what is signed or made elsewhere.

Rules:
- Bytes that were given out may be signed and broadcast by anybody who has them, at any time. So the chain is
  asked as long as they wait, and before they are given up. What it shows is the answer.
- A nonce of the hot wallet that was given out is never free again. Whoever gives it up has it cancelled: the
  transfer ends when the chain has used the nonce, by the cancellation or by the transfer after all.
- Another transaction with such a nonce freezes the hot wallet, because somebody else has its key.
- What was made elsewhere is only judged. A hash that no node knows is said at once.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import structlog

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.money import format_units
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.cold import ColdChain, Executed, InFlight, Replaced, read_moved
from merchant_wallet.chains.protocol import Blocked, SignedTransfer, TokenTransfer
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.store import ColdTransfer

HOT_SIGNATURE_MS: Final = 1_800_000
"""The hot wallet's nonce waits this long for a signature from elsewhere."""
COLD_SIGNATURE_MS: Final = 43_200_000

NOT_SIGNED: Final = "it was not signed in time"
WORKER: Final = "worker"
"""Who gives up what was not signed in time."""

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
            log.warning("cold transfer is not taken", **describe(one), error=repr(error))
            return f"the nodes do not take it: {error}"
        return None

    async def drop(self, one: ColdTransfer) -> None:
        """End a transfer that somebody gives up, and of which nothing can move any more, or is known."""
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

    async def follow_given_out(
        self, cold: ColdChain, one: ColdTransfer, signed: SignedTransfer | None
    ) -> None:
        """Send what came back signed, look for given-out bytes on the chain, end or give up the transfer."""
        refused = None
        if signed is not None and one.drop_asked_by is None:
            refused = await self.send(cold.broadcast(signed.raw), one)
        match await cold.find_execution(one.sender, one.given_out):
            case Executed(tx_hash=tx_hash):
                await self._judge_moved(cold, one, tx_hash)
            case Replaced(tx_hash=tx_hash):
                await self._end_replaced(one, tx_hash)
            case InFlight(cause=cause):
                if one.drop_asked_by is not None:
                    await self._cancel(one)
                await self.note(one, refused if signed is not None else cause)
            case None if one.drop_asked_by is not None:
                await self._give_up(one)
            case None if signed is None and self._is_overdue(one):
                connection = await self._worker_connection.get()
                # From here on no signature is taken.
                if await store.ask_drop(connection, one, WORKER):
                    await self._give_up(store.as_dropped_by(one, WORKER))
            case None:
                await self.note(one, refused)

    async def take_other(self, cold: ColdChain, one: ColdTransfer, signed: Sequence[SignedTransfer]) -> bool:
        """End a transfer of the hot wallet that a wallet program made with other fees than were brought back.

        Returns whether the chain has such a transaction.
        """
        found = await cold.find_execution(one.sender, one.given_out)
        if not isinstance(found, Executed) or found.tx_hash in {each.tx_hash for each in signed}:
            return False
        await self._judge_moved(cold, one, found.tx_hash)
        return True

    async def judge_recorded(self, cold: ColdChain, one: ColdTransfer) -> None:
        """End a transfer that was made elsewhere by what it moved, once that is final."""
        if one.tx_hash is None:
            raise AssertionError("what is recorded has a hash")
        if await self._judge_moved(cold, one, one.tx_hash):
            return
        if await cold.knows(one.tx_hash):
            await self.note(one, None)
        elif one.drop_asked_by is not None:
            await self.drop(one)
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

    async def _give_up(self, one: ColdTransfer) -> None:
        """End it, or first have the hot wallet's nonce cancelled."""
        if not one.gave_nonce_out:
            await self.drop(one)
            return
        await self._cancel(one)
        await self.note(
            one, f"nonce {one.nonce} is being cancelled: until that is final, a signature could still use it"
        )

    async def _cancel(self, one: ColdTransfer) -> None:
        """Let nothing but a cancellation use the hot wallet's nonce from here on, as far as we sign."""
        if one.gave_nonce_out:
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
