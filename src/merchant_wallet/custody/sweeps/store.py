"""The rows of sweeps: what was decided and signed, and how each ended. Statements are in `sweeps.sql`.

Rules:
- Every step is one transaction that first increments the sweep's version (compare and swap). If two work on a
  sweep, one continues and the other gets `SweepMovedOn`.
- Bytes are signed inside the transaction that stores them. It also takes the nonce of the hot wallet. So no
  nonce is taken without bytes that can be sent, even if the process is killed.
- All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Iterable, Sequence, Set
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.chains.signer import Source
from merchant_wallet.chains.sweeps import RESCUE, TOKEN, TOP_UP, Draft, Kind, Rescue, SweepTx
from merchant_wallet.custody.sweeps.plan import PlannedSweep, Terms
from merchant_wallet.custody.sweeps.sweep_states import Event, State, step
from merchant_wallet.hot_wallet import nonces, stops
from merchant_wallet.hot_wallet import store as hot_wallets
from merchant_wallet.hot_wallet.nonces import Purpose

QUERIES: Final = Queries(Path(__file__).with_name("sweeps.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]


class SweepMovedOn(Exception):
    """Another process has advanced the sweep."""


class Sweep(msgspec.Struct, frozen=True, gc=False):
    """An open sweep.

    `rescue` is what it moves instead of the token, if it carries a rescue out: then `amount_units` is 0.
    `is_begun`: workers go on with it. `budget_left` is what it may still burn.
    """

    chain: str
    sweep_id: int
    address: bytes
    merchant_id: int
    source: Source
    rescue: Rescue | None
    wallet: bytes
    amount_units: int
    coin_price_units: int
    top_up: int
    top_up_fee_limit: int
    token_fee_limit: int
    step: Kind
    version: int
    top_up_nonce: int | None
    token_nonce: int | None
    opened_ms: int
    is_begun: bool
    obstacle: str | None
    stalled_ms: int | None
    budget_left: int
    reserved: int

    @property
    def sweep_tx(self) -> SweepTx:
        """The present transaction."""
        is_top_up = self.step == TOP_UP
        amount = self.amount_units if self.rescue is None else self.rescue.amount
        return SweepTx(
            self.sweep_id,
            self.step,
            self.address,
            self.source,
            self.wallet,
            self.top_up if is_top_up else amount,
            # Coin that somebody sent to the address may be burnt too, within the budget.
            self.top_up_fee_limit if is_top_up else self.budget_left,
            self.top_up_nonce if is_top_up else self.token_nonce,
            self.reserved,
            self.rescue,
        )


class SweepShown(msgspec.Struct, frozen=True, gc=False):
    """A sweep for an operator. Coin is in the chain's smallest unit."""

    chain: str
    sweep_id: int
    address: bytes
    merchant_id: int
    amount_units: int
    coin_price_units: int
    top_up: int
    step: str
    top_up_tx_hash: str | None
    top_up_fee: int | None
    token_tx_hash: str | None
    token_fee: int | None
    obstacle: str | None
    cause: str | None
    actor: str
    opened_ms: int
    ended_ms: int | None
    continues: int | None
    stalled_ms: int | None


class Totals(msgspec.Struct, frozen=True, gc=False):
    """A chain's sweeps for reconciliation.

    `moved_units` reached the hot wallet, and `open_units` are on their way. `burnt` is coin lost in fees.
    `topped_up` is coin that was sent to deposit addresses. What was not burnt is still there.
    """

    moved_units: int
    open_units: int
    burnt: int
    topped_up: int


async def count_open(connection: Connection, chain: str) -> int:
    """The number of open sweeps."""
    [(count,)] = await _fetch(connection, "count_open", {"chain": chain})
    return int(count)


async def open_sweep(
    connection: Connection,
    planned: PlannedSweep,
    wallet: bytes,
    *,
    coin_price_units: int,
    max_concurrent: int,
    actor: str,
    now_ms: int,
) -> int | None:
    """Insert a sweep and return its id. None if the address has an open one, or too many are open.

    `planned` has its terms.
    """
    candidate, source = planned.candidate, planned.candidate.source
    values = {
        "chain": candidate.chain,
        "address": candidate.address,
        "merchant_id": candidate.merchant_id,
        "account_no": source.account,
        "branch": source.branch,
        "address_index": source.index,
        "wallet": wallet,
        "amount": candidate.balance_units,
        "coin_price": coin_price_units,
        **_make_terms_params(planned.terms),
        "actor": actor,
        "now_ms": now_ms,
        "max_concurrent": max_concurrent,
    }
    rows = await _fetch(connection, "open_sweep", values)
    return int(rows[0][0]) if rows else None


async def list_open(connection: Connection, chain: str) -> list[Sweep]:
    """The open sweeps, oldest first."""
    rows = await _fetch(connection, "list_open", {"chain": chain})
    return [
        Sweep(chain, sweep_id, address, merchant_id, Source(*rest[:3]), _read_rescue(*rest[3:6]), *rest[6:])
        for sweep_id, address, merchant_id, *rest in rows
    ]


def _read_rescue(contract: bytes | None, recipient: bytes | None, rescued: Decimal | None) -> Rescue | None:
    return None if recipient is None or rescued is None else Rescue(contract, recipient, int(rescued))


async def list_sweeps(
    connection: Connection,
    *,
    chain: str | None = None,
    sweep_id: int | None = None,
    only_open: bool = False,
    limit: int = 100,
) -> list[SweepShown]:
    """Sweeps for an operator, newest first."""
    values = {"chain": chain, "sweep_id": sweep_id, "only_open": only_open, "limit": limit}
    rows = await _fetch(connection, "list_sweeps", values)
    return [SweepShown(name, sweep_id, bytes(address), *rest) for name, sweep_id, address, *rest in rows]


async def list_failed(connection: Connection, chains: Sequence[str], *, limit: int = 100) -> list[SweepShown]:
    """Sweeps that failed and that nobody has looked at, oldest first. `limit` is that of each chain."""
    rows = await _fetch(connection, "list_failed", {"chains": list(chains), "limit": limit})
    return [SweepShown(name, sweep_id, bytes(address), *rest) for name, sweep_id, address, *rest in rows]


async def settle_failed(connection: Connection, sweep: SweepShown, actor: str) -> bool:
    """A person ends what a worker has ended as failed. False if it did not fail, or a person has ended it."""
    values = {"chain": sweep.chain, "sweep_id": sweep.sweep_id, "actor": actor}
    return bool(await _fetch(connection, "settle_failed", values))


def find_successors(sweep_ids: Set[int], sweeps: Iterable[SweepShown]) -> set[int]:
    """Of some sweeps, the successors of these, and theirs. Pure."""
    found = set(sweep_ids)
    for sweep in sorted(sweeps, key=lambda one: one.sweep_id):
        if sweep.continues in found:
            found.add(sweep.sweep_id)
    return found - set(sweep_ids)


async def sum_sweeps(connection: Connection, chain: str) -> Totals:
    """See `Totals`."""
    [row] = await _fetch(connection, "sum_sweeps", {"chain": chain})
    return Totals(*map(int, row))


async def read_signed(connection: Connection, sweep: Sweep) -> list[SignedTransfer]:
    """Everything that was signed for the present transaction, oldest first."""
    rows = await _fetch(connection, "read_signed", {**_make_key_params(sweep), "kind": sweep.step})
    return [SignedTransfer(bytes(raw), tx_hash, block) for raw, tx_hash, block in rows]


async def find_next_token_nonce(connection: Connection, sweep: Sweep) -> int:
    """The nonce after all that sweeps have used of the address."""
    [(nonce,)] = await _fetch(connection, "next_token_nonce", _make_key_params(sweep))
    return int(nonce)


async def sign(
    connection: Connection,
    sweep: Sweep,
    draft: Draft,
    *,
    attempt_no: int,
    has_nonces: bool,
    token_nonce: int | None,
    now_ms: int,
) -> SignedTransfer:
    """Sign the present transaction and store it. Take a nonce if it has none yet.

    Raises SweepMovedOn, WalletMoved, Blocked, SignerAway. Then nothing is stored and no nonce taken.
    """
    is_top_up = sweep.step == TOP_UP
    async with connection.transaction():
        await _take_step(connection, sweep)
        await hot_wallets.lock(connection, sweep.chain, sweep.wallet)
        # A stop of payouts does not stop incoming tokens.
        await stops.refuse_stopped(connection, sweep.chain, comes_in=sweep.step == TOKEN)
        nonce = sweep.sweep_tx.nonce
        if has_nonces and nonce is None:
            nonce = token_nonce
            if is_top_up:
                nonce = await nonces.take(connection, sweep.chain, sweep.wallet, Purpose.TOP_UP, now_ms)
        signed = await draft.sign(nonce)
        used: dict[str, int | None] = {"top_up_nonce": None, "token_nonce": None}
        used["top_up_nonce" if is_top_up else "token_nonce"] = nonce
        await connection.execute(_TEXTS["set_nonces"], {**_make_key_params(sweep), **used})
        await connection.execute(
            _TEXTS["store_signed"],
            {
                **_make_key_params(sweep),
                "kind": sweep.step,
                "attempt_no": attempt_no,
                "raw": signed.raw,
                "tx_hash": signed.tx_hash,
                "built_at_block": signed.built_at_block,
                "now_ms": now_ms,
            },
        )
    return signed


async def end_tx(
    connection: Connection, sweep: Sweep, tx_hash: str, fee: int | None, now_ms: int, *, arrived: int = 0
) -> None:
    """The transaction is final: go on, or end the sweep. Raises SweepMovedOn.

    `arrived` is what a rescue's recipient got.
    """
    is_funded_rescue = sweep.step == TOP_UP and sweep.rescue is not None
    next_step = step(State(sweep.step), Event.FUNDED if is_funded_rescue else Event.FINAL).value
    values = {**_make_key_params(sweep), "step": next_step, "tx_hash": tx_hash, "fee": fee, "now_ms": now_ms}
    async with connection.transaction():
        await _take_step(connection, sweep)
        await connection.execute(_TEXTS["end_top_up" if sweep.step == TOP_UP else "end_token"], values)
        if sweep.step == RESCUE:
            await connection.execute(_TEXTS["end_rescue"], {**values, "arrived": arrived})
        if sweep.step == TOP_UP:
            await nonces.end_cancelled(connection, sweep.chain, sweep.wallet, sweep.top_up_nonce, now_ms)


async def fail(
    connection: Connection,
    sweep: Sweep,
    cause: str,
    fee: int | None,
    now_ms: int,
    *,
    wallet_fault: str | None = None,
    ended_by: str | None = None,
) -> None:
    """The sweep fails: its transaction moves nothing. `wallet_fault` also freezes its hot wallet, unless
    that is not the chain's any more. `ended_by` is the person who ended it.

    Either the chain proves it, or nothing that was signed can count. Raises SweepMovedOn, also if more was
    signed meanwhile.
    """
    values = {**_make_key_params(sweep), "cause": cause, "fee": fee, "ended_by": ended_by, "now_ms": now_ms}
    async with connection.transaction():
        await _take_step(connection, sweep)
        await _end_without(connection, sweep, Event.FAILED, values)
        if wallet_fault is not None and sweep.step == TOP_UP:
            await stops.freeze_wallet(connection, sweep.chain, wallet_fault, now_ms, wallet=sweep.wallet)


async def continue_sweep(connection: Connection, sweep: Sweep, terms: Terms, cause: str, now_ms: int) -> int:
    """End a sweep and open its successor, on other terms. Returns its id. Raises SweepMovedOn."""
    values = {**_make_key_params(sweep), "cause": cause, "fee": None, "ended_by": None, "now_ms": now_ms}
    async with connection.transaction():
        await _take_step(connection, sweep)
        await _end_without(connection, sweep, Event.CONTINUED, values)
        [(sweep_id,)] = await _fetch(connection, "continue_sweep", {**values, **_make_terms_params(terms)})
    return int(sweep_id)


async def note_obstacle(
    connection: Connection, sweep: Sweep, obstacle: str | None, stalled_ms: int | None
) -> None:
    """Store why a sweep waits, and since when it can't be signed, unless it has moved on."""
    values = {**_make_key_params(sweep), "obstacle": obstacle, "stalled_ms": stalled_ms}
    await connection.execute(_TEXTS["note_obstacle"], values)


async def drop_unsigned(connection: Connection, chain: str, before_ms: int, now_ms: int) -> int:
    """Drop sweeps that were decided before a moment and never signed. Returns how many."""
    values = {"chain": chain, "step": State.DROPPED.value, "before_ms": before_ms, "now_ms": now_ms}
    return (await connection.execute(_TEXTS["drop_unsigned"], values)).rowcount


async def _end_without(connection: Connection, sweep: Sweep, event: Event, values: dict[str, Any]) -> None:
    next_step = step(State(sweep.step), event).value
    await connection.execute(_TEXTS["end_without"], {**values, "step": next_step})


async def _take_step(connection: Connection, sweep: Sweep) -> None:
    if (await connection.execute(_TEXTS["take_step"], _make_key_params(sweep))).rowcount != 1:
        raise SweepMovedOn(f"sweep {sweep.sweep_id} of {sweep.chain} has moved on")


async def _fetch(connection: Connection, name: str, values: dict[str, Any]) -> Sequence[Any]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()


def _make_terms_params(terms: Terms | None) -> dict[str, Any]:
    if terms is None:
        raise ValueError("only what is worth sweeping has terms")
    return msgspec.structs.asdict(terms)


def _make_key_params(sweep: Sweep) -> dict[str, Any]:
    return {
        "chain": sweep.chain,
        "sweep_id": sweep.sweep_id,
        "version": sweep.version,
        "address": sweep.address,
    }
