"""The rows of rescues: what two people decided, and how it ended. Statements are in `rescues.sql`.

Rules:
- A rescue is stored before anything is signed for it. One sweep carries it out (`sweep.rescue_no`), with the
  sweeps that continue it.
- Amounts are in the smallest units of the token or coin, and may have 256 bits.
- All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.chains import EVM
from merchant_wallet.base.db import Queries
from merchant_wallet.chains.signer import Source
from merchant_wallet.custody.sweeps.plan import Terms
from merchant_wallet.custody.sweeps.sweep_states import State

QUERIES: Final = Queries(Path(__file__).with_name("rescues.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

STANDS_MS: Final = 1_800_000
"""After so long a rescue that is under way waits for a person."""

Connection = AsyncConnection[Any]


class KeyAccount(NamedTuple):
    """Whose an address is. `account_no` is None if the merchant has no account of the seed."""

    merchant_id: int
    account_no: int | None


class KeyOwner(NamedTuple):
    """What an address was issued for. Without `ext_user_id` it is the merchant's own.

    `branch` and `address_index` are the end of its key's path. `is_evm`: it was issued for the EVM chains,
    otherwise for TRON.
    """

    ext_user_id: str | None
    branch: int
    address_index: int
    is_evm: bool


class NewRescue(msgspec.Struct, frozen=True):
    """A rescue that two people decided. Without `contract` it is coin, without `asked` everything."""

    chain: str
    address: bytes
    merchant_id: int
    source: Source
    contract: bytes | None
    asked: int | None
    recipient: bytes
    proposal_no: int | None
    actor: str


class Unopened(msgspec.Struct, frozen=True, gc=False):
    """A rescue without a sweep."""

    rescue_no: int
    address: bytes
    contract: bytes | None
    asked: int | None
    recipient: bytes
    opened_ms: int
    obstacle: str | None


class RescueShown(msgspec.Struct, frozen=True, gc=False):
    """A rescue for an operator. `step` is that of its last sweep, or `waiting` before there is one.

    `rescued` is what its transaction asks for, `arrived` what the token's log says. `fee` is coin. `ended_by`
    is the person who ended it.
    """

    rescue_no: int
    chain: str
    address: bytes
    merchant_id: int
    contract: bytes | None
    asked: int | None
    recipient: bytes
    proposal_no: int | None
    actor: str
    opened_ms: int
    step: str
    sweep_id: int | None
    rescued: int | None
    arrived: int | None
    tx_hash: str | None
    fee: int | None
    obstacle: str | None
    cause: str | None
    ended_ms: int | None
    ended_by: str | None

    @property
    def is_over(self) -> bool:
        """Whether it was moved, or a person has ended it. Nothing more can be done about it."""
        return self.step == State.DONE or self.ended_by is not None


async def lock_address(connection: Connection, chain: str, address: bytes) -> None:
    """Let nobody else decide about rescues of an address before this transaction ends."""
    await connection.execute(_TEXTS["lock_address"], {"chain": chain, "address": address})


async def count_rescues(connection: Connection, chain: str, address: bytes) -> tuple[int, bool]:
    """How many rescues there were at an address, and whether something is being moved from there."""
    [(count, is_busy)] = await _fetch(connection, "count_rescues", chain=chain, address=address)
    return int(count), bool(is_busy)


async def find_account(home: Connection, address: bytes) -> KeyAccount | None:
    """Whose a deposit address is. None if it is none."""
    rows = await _fetch(home, "find_account", address=address)
    return KeyAccount(*rows[0]) if rows else None


async def find_owner(cell: Connection, merchant_id: int, address: bytes) -> KeyOwner | None:
    """What an address of a merchant was issued for. None if the cell does not know it."""
    rows = await _fetch(cell, "find_owner", merchant_id=merchant_id, address=address, evm=EVM.key_name)
    return KeyOwner(*rows[0]) if rows else None


async def add_rescue(connection: Connection, new: NewRescue, now_ms: int) -> int:
    """Store what two people decided. Returns its number."""
    source = new.source
    values = {
        **msgspec.structs.asdict(new),
        "account_no": source.account,
        "branch": source.branch,
        "address_index": source.index,
        "now_ms": now_ms,
    }
    [(rescue_no,)] = await _fetch(connection, "add_rescue", **values)
    return int(rescue_no)


async def list_unopened(connection: Connection, chain: str) -> list[Unopened]:
    """Rescues of a chain without a sweep, oldest first."""
    return [Unopened(*map(_plain, row)) for row in await _fetch(connection, "list_unopened", chain=chain)]


async def open_sweep(
    connection: Connection, rescue_no: int, wallet: bytes, rescued: int, terms: Terms, now_ms: int
) -> int | None:
    """Open the sweep of a rescue. None if something is being moved from its address, or it has a sweep."""
    values = {**msgspec.structs.asdict(terms), "rescue_no": rescue_no, "wallet": wallet, "now_ms": now_ms}
    rows = await _fetch(connection, "open_sweep", rescued=rescued, **values)
    return int(rows[0][0]) if rows else None


async def note_obstacle(connection: Connection, rescue_no: int, obstacle: str | None) -> None:
    """Store why a rescue does not begin."""
    await connection.execute(_TEXTS["note_obstacle"], {"rescue_no": rescue_no, "obstacle": obstacle})


async def fail_unopened(
    connection: Connection, rescue_no: int, cause: str, now_ms: int, *, ended_by: str | None = None
) -> bool:
    """End a rescue without a sweep as failed.

    `ended_by` is the person who ends it. A person also ends what a worker has ended; then the cause stays.
    False if it has a sweep, if it has ended before, or if the database was rolled back.
    """
    values = {"rescue_no": rescue_no, "cause": cause, "now_ms": now_ms, "ended_by": ended_by}
    async with connection.transaction():
        await connection.execute(_TEXTS["lock_rescue"], values)
        ended = await connection.execute(_TEXTS["fail_unopened"], values)
        if ended_by is not None:
            ended = await connection.execute(_TEXTS["settle_failed"], values)
    return ended.rowcount == 1


async def list_rescues(
    connection: Connection, *, rescue_no: int | None = None, address: bytes | None = None, limit: int = 100
) -> list[RescueShown]:
    """Rescues, newest first: all, one, or those of an address."""
    return await _list_shown(connection, "list_rescues", rescue_no=rescue_no, address=address, limit=limit)


async def list_standing(connection: Connection, before_ms: int, *, limit: int = 100) -> list[RescueShown]:
    """Rescues that wait for a person: failed, or under way since before a moment."""
    return await _list_shown(connection, "list_standing", before_ms=before_ms, limit=limit)


async def list_moved(connection: Connection, since_ms: int, until_ms: int) -> list[RescueShown]:
    """What rescues moved in a period, oldest first."""
    return await _list_shown(connection, "list_moved", since_ms=since_ms, until_ms=until_ms)


async def _list_shown(connection: Connection, name: str, **values: object) -> list[RescueShown]:
    return [RescueShown(*map(_plain, row)) for row in await _fetch(connection, name, **values)]


def _plain(value: Any) -> Any:
    """A value of a row: numbers of any size are whole, addresses are bytes."""
    return int(value) if isinstance(value, Decimal) else value


async def _fetch(connection: Connection, name: str, **values: object) -> Sequence[Any]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
