"""The rows of transfers between hot and cold wallets. Statements are in `transfers.sql`.

Rules:
- A transfer is reserved (funds and nonce), signed, stored, and only then sent, as a payout is.
- Every change of a worker holds the transfer's fence (`version`). Who lost it gets `TransferMovedOn`.
- A reservation is released only while nothing is signed, and no nonce was exported to be signed.
- All functions raise `psycopg.Error`. Times are milliseconds, amounts units of 10^-6.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.chains.cold import UnsignedTransfer
from merchant_wallet.chains.protocol import SignedTransfer, Transfer
from merchant_wallet.custody.cold.limits import ELSEWHERE, RECORDED, TO_COLD, Direction, Way
from merchant_wallet.hot_wallet import funds, nonces, stops
from merchant_wallet.hot_wallet import store as hot_wallets
from merchant_wallet.hot_wallet.funds import Outdated, Reservation, Shortage, Wanted
from merchant_wallet.hot_wallet.nonces import Purpose

QUERIES: Final = Queries(Path(__file__).with_name("transfers.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

UNSIGNED: Final = "unsigned"
SIGNED: Final = "signed"
DONE: Final = "done"
FAILED: Final = "failed"
DROPPED: Final = "dropped"


Connection = AsyncConnection[Any]


class TransferMovedOn(Exception):
    """Another process, or a person, has advanced the transfer."""


class NewTransfer(msgspec.Struct, frozen=True):
    """A transfer that two people approved."""

    chain: str
    direction: Direction
    way: Way
    hot: bytes
    cold: bytes
    amount_units: int
    tx_hash: str | None
    proposal_no: int | None
    approved_by: str


class ColdTransfer(msgspec.Struct, frozen=True):
    """A transfer. For the steps see the migration."""

    chain: str
    transfer_id: int
    direction: Direction
    way: Way
    hot: bytes
    cold: bytes
    amount_units: int
    step: str
    version: int
    nonce: int | None
    reserved_ms: int | None
    ended_no: int | None
    unsigned: bytes | None
    unsigned_at_block: int | None
    unsigned_until_ms: int | None
    tx_hash: str | None
    obstacle: str | None
    cause: str | None
    approved_by: str
    proposal_no: int | None
    drop_asked_by: str | None
    opened_ms: int
    ended_ms: int | None

    @property
    def leaves_hot(self) -> bool:
        """Whether the hot wallet signs it, so that its funds and its nonce must be reserved."""
        return self.direction == TO_COLD and self.way != RECORDED

    @property
    def sender(self) -> bytes:
        """Whose token moves."""
        return self.hot if self.direction == TO_COLD else self.cold

    @property
    def transfer(self) -> Transfer:
        """What must move."""
        recipient = self.cold if self.direction == TO_COLD else self.hot
        return Transfer(self.chain, USDT, recipient, self.amount_units)

    @property
    def may_be_dropped(self) -> bool:
        """Whether a person may give it up: nothing that left the hot wallet can be under way."""
        is_open = self.ended_ms is None and self.drop_asked_by is None
        return is_open and (self.step != SIGNED or self.direction != TO_COLD)

    @property
    def exported(self) -> UnsignedTransfer:
        """The bytes that somebody signs elsewhere. Raises ValueError if there are none."""
        if self.unsigned is None:
            raise ValueError("nothing was exported to be signed")
        return UnsignedTransfer(self.unsigned, self.unsigned_at_block or 0)

    @property
    def exports_nonce(self) -> bool:
        """Whether somebody may sign with the hot wallet's nonce elsewhere. Then it is never free again."""
        return self.unsigned is not None and self.nonce is not None

    @property
    def waits_for_signature(self) -> bool:
        """Whether a person must sign it elsewhere now."""
        return self.way == ELSEWHERE and self.step == UNSIGNED and self.drop_asked_by is None


_FIELDS: Final = tuple(ColdTransfer.__struct_fields__)


async def open_transfer(connection: Connection, new: NewTransfer, now_ms: int) -> int | None:
    """Store a transfer. None if one of the chain is under way, its transaction is known, or the database was
    rolled back.
    """
    values = {
        "chain": new.chain,
        "direction": new.direction,
        "way": new.way,
        "hot": new.hot,
        "cold": new.cold,
        "amount": new.amount_units,
        "tx_hash": new.tx_hash,
        "proposal_no": new.proposal_no,
        "approved_by": new.approved_by,
        "now_ms": now_ms,
    }
    rows = await _fetch(connection, "open_transfer", values)
    return int(rows[0][0]) if rows else None


async def list_due(connection: Connection, chain: str, now_ms: int) -> list[ColdTransfer]:
    """The open transfers of a chain that no worker has claimed."""
    return _read_rows(await _fetch(connection, "list_due", {"chain": chain, "now_ms": now_ms}))


async def list_transfers(
    connection: Connection, *, chain: str | None = None, before_id: int = MAX_BIGINT, limit: int = 50
) -> list[ColdTransfer]:
    """Transfers, newest first."""
    values = {"chain": chain, "before_id": before_id, "limit": limit}
    return _read_rows(await _fetch(connection, "list_transfers", values))


async def list_open(connection: Connection) -> list[ColdTransfer]:
    """All transfers under way. There is at most one for each chain."""
    return _read_rows(await _fetch(connection, "list_open", {}))


async def read_transfer(connection: Connection, transfer_id: int) -> ColdTransfer | None:
    """One transfer."""
    rows = await _fetch(connection, "read_transfer", {"transfer_id": min(transfer_id, MAX_BIGINT)})
    return _read_rows(rows)[0] if rows else None


async def find_open(connection: Connection, chain: str) -> int | None:
    """The chain's transfer that is under way."""
    rows = await _fetch(connection, "find_open", {"chain": chain})
    return int(rows[0][0]) if rows else None


async def claim(connection: Connection, one: ColdTransfer, until_ms: int) -> ColdTransfer:
    """Claim a transfer until a moment. Returns it with its new fence. Raises TransferMovedOn."""
    rows = await _fetch(connection, "claim", _params(one) | {"until_ms": until_ms})
    if not rows:
        raise TransferMovedOn(f"cold transfer {one.transfer_id} has moved on")
    return msgspec.structs.replace(one, version=rows[0][0])


async def unclaim(connection: Connection, one: ColdTransfer) -> None:
    """Let anybody claim it again."""
    await connection.execute(_TEXTS["unclaim"], _params(one))


async def reserve(
    connection: Connection, one: ColdTransfer, wanted: Wanted, now_ms: int
) -> ColdTransfer | Shortage | Outdated:
    """Reserve the amount, and a nonce, in the hot wallet. Returns the transfer with both.

    Raises TransferMovedOn, Blocked if the wallet is stopped, and WalletMoved.
    """
    async with connection.transaction():
        await _hold_fence(connection, one)
        found = await funds.reserve(connection, wanted, Purpose.COLD, now_ms)
        if not isinstance(found, Reservation):
            return found
        await connection.execute(_TEXTS["reserve"], _params(one) | {"nonce": found.nonce, "now_ms": now_ms})
    return msgspec.structs.replace(one, nonce=found.nonce, reserved_ms=now_ms)


async def release(connection: Connection, one: ColdTransfer, now_ms: int) -> None:
    """Release the reservation, if nothing is signed. Raises TransferMovedOn."""
    async with connection.transaction():
        await _hold_fence(connection, one)
        await _release(connection, one, now_ms)


async def read_signed(connection: Connection, one: ColdTransfer) -> list[tuple[SignedTransfer, int]]:
    """Everything that was signed for a transfer, oldest first, each with its time."""
    rows = await _fetch(connection, "read_signed", _params(one))
    return [(SignedTransfer(bytes(raw), tx_hash, block), at_ms) for raw, tx_hash, block, at_ms in rows]


async def store_signed(
    connection: Connection, one: ColdTransfer, signed: SignedTransfer, *, attempt_no: int, now_ms: int
) -> None:
    """Store signed bytes before anybody sends them.

    Raises TransferMovedOn, Blocked if the wallet is stopped, and WalletMoved.
    """
    values = _describe_signed(signed, attempt_no, now_ms)
    async with connection.transaction():
        await _hold_fence(connection, one)
        await hot_wallets.lock(connection, one.chain, one.hot)
        await stops.refuse_stopped(connection, one.chain)
        await connection.execute(_TEXTS["store_signed"], _params(one) | values)
        await connection.execute(_TEXTS["set_signed"], _params(one) | values)


async def store_unsigned(
    connection: Connection, one: ColdTransfer, unsigned: bytes, built_at_block: int, until_ms: int
) -> None:
    """Store the bytes that somebody signs elsewhere. Raises TransferMovedOn."""
    values = {"unsigned": unsigned, "built_at_block": built_at_block, "until_ms": until_ms}
    async with connection.transaction():
        await _hold_fence(connection, one)
        await connection.execute(_TEXTS["set_unsigned"], _params(one) | values)


async def take_signature(
    connection: Connection, one: ColdTransfer, signed: SignedTransfer, now_ms: int
) -> bool:
    """Store bytes that were signed elsewhere, in the caller's transaction. False if nothing waits for it.

    Raises Blocked if they spend from the hot wallet and its chain's payouts are stopped.
    """
    if one.leaves_hot:
        await stops.refuse_stopped(connection, one.chain)
    values = {"tx_hash": signed.tx_hash, "unsigned": one.unsigned}
    if (await connection.execute(_TEXTS["take_signature"], _params(one) | values)).rowcount != 1:
        return False
    stored = _describe_signed(signed, attempt_no=1, now_ms=now_ms)
    await connection.execute(_TEXTS["store_signed"], _params(one) | stored)
    return True


async def ask_drop(connection: Connection, one: ColdTransfer, actor: str) -> bool:
    """Ask the worker to give a transfer up. False if that is not possible any more."""
    return (await connection.execute(_TEXTS["ask_drop"], _params(one) | {"actor": actor})).rowcount == 1


async def ask_drop_unsigned(connection: Connection, one: ColdTransfer, actor: str) -> ColdTransfer:
    """Drop a transfer that nobody has signed: no signature is taken from here on. Raises TransferMovedOn."""
    values = _params(one) | {"actor": actor}
    if (await connection.execute(_TEXTS["ask_drop_unsigned"], values)).rowcount != 1:
        raise TransferMovedOn(f"cold transfer {one.transfer_id} has moved on")
    return msgspec.structs.replace(one, drop_asked_by=actor)


async def cancel_nonce(connection: Connection, one: ColdTransfer, now_ms: int) -> None:
    """Have the exported nonce cancelled. Raises TransferMovedOn."""
    async with connection.transaction():
        await _hold_fence(connection, one)
        await nonces.cancel(connection, one.chain, one.hot, Purpose.COLD, one.nonce, now_ms)


async def is_cancellation(connection: Connection, one: ColdTransfer, tx_hash: str) -> bool:
    """Whether a transaction was signed here to cancel the transfer's nonce."""
    return bool(await _fetch(connection, "find_cancellation", _params(one) | {"tx_hash": tx_hash}))


async def end(
    connection: Connection,
    one: ColdTransfer,
    step: str,
    now_ms: int,
    *,
    cause: str | None = None,
    tx_hash: str | None = None,
    wallet_fault: str | None = None,
) -> None:
    """End a transfer as `done`, `failed` or `dropped`. `wallet_fault` also freezes the hot wallet.

    What is given up and could not be signed is released, any other reservation ends. Raises TransferMovedOn.
    """
    values = _params(one) | {"step": step, "cause": cause, "tx_hash": tx_hash, "now_ms": now_ms}
    async with connection.transaction():
        await _hold_fence(connection, one)
        is_released = step == DROPPED and not one.exports_nonce
        if is_released:
            await _release(connection, one, now_ms)
        await connection.execute(_TEXTS["end_reservation"], values)
        await connection.execute(_TEXTS["end_transfer"], values)
        if not is_released:
            await nonces.end_cancelled(connection, one.chain, one.hot, one.nonce, now_ms)
        if wallet_fault is not None:
            await stops.freeze_wallet(connection, one.chain, wallet_fault, now_ms, wallet=one.hot)


async def note_obstacle(connection: Connection, one: ColdTransfer, obstacle: str | None) -> None:
    """Store why a transfer waits, unless it has moved on."""
    await connection.execute(_TEXTS["note_obstacle"], _params(one) | {"obstacle": obstacle})


async def _hold_fence(connection: Connection, one: ColdTransfer) -> None:
    if (await connection.execute(_TEXTS["hold_fence"], _params(one))).rowcount != 1:
        raise TransferMovedOn(f"cold transfer {one.transfer_id} has moved on")


async def _release(connection: Connection, one: ColdTransfer, now_ms: int) -> None:
    for (nonce,) in await _fetch(connection, "release", _params(one)):
        if nonce is not None:
            await nonces.free(connection, one.chain, one.hot, Purpose.COLD, [nonce], now_ms)


async def _fetch(connection: Connection, name: str, values: dict[str, Any]) -> Sequence[Any]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()


def _read_rows(rows: Sequence[Sequence[Any]]) -> list[ColdTransfer]:
    return [_read_row(dict(zip(_FIELDS, row, strict=True))) for row in rows]


def _read_row(row: dict[str, Any]) -> ColdTransfer:
    row |= {name: _bytes(row[name]) for name in ("hot", "cold", "unsigned")}
    return ColdTransfer(**row)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _describe_signed(signed: SignedTransfer, attempt_no: int, now_ms: int) -> dict[str, Any]:
    return msgspec.structs.asdict(signed) | {"attempt_no": attempt_no, "now_ms": now_ms}


def _params(one: ColdTransfer) -> dict[str, Any]:
    return {
        "chain": one.chain,
        "transfer_id": one.transfer_id,
        "version": one.version,
        "hot": one.hot,
        "nonce": one.nonce,
    }
