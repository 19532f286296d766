"""Funds, and on EVM chains a nonce, that are reserved in the hot wallet for one withdrawal.

Rules:
- Each function is one transaction. It checks the claim's fence and locks the payout row, then the wallet row.
  This order prevents deadlocks.
- Nothing is signed without a reservation.
- Nothing is reserved for a wallet of ours. Who registers a cold wallet locks the hot wallet's row too, and
  looks for reservations. So the later of the two sees the other.
- A reservation is released only while nothing is signed. After that it stays until the chain has spent it.

All raise `payouts.ClaimLost` when a later claim has taken the order, and `psycopg.Error`. Moments are
milliseconds, amounts units of 10^-6.
"""

from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Unpayable
from merchant_wallet.hot_wallet import funds, nonces, stops
from merchant_wallet.hot_wallet.funds import Outdated, Reservation, Shortage, Wanted
from merchant_wallet.hot_wallet.nonces import Purpose
from merchant_wallet.merchants import own_addresses
from merchant_wallet.withdrawals.payouts import Claim, ClaimLost

QUERIES: Final = Queries(Path(__file__).with_name("reservations.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


async def reserve(
    connection: AsyncConnection, claim: Claim, wanted: Wanted, now_ms: int
) -> Reservation | Shortage | Outdated:
    """Reserve money, and a nonce, for an order.

    Raises ClaimLost, Blocked, Unpayable if the recipient is a wallet of ours, `hot_wallet.store.WalletMoved`.
    """
    key = (claim.merchant_id, claim.order_id)
    async with connection.transaction():
        await _write(connection, "hold_fence", claim, {})
        found = await funds.reserve(connection, wanted, Purpose.PAYOUT, now_ms, order=key)
        if isinstance(found, Reservation):
            await refuse_own(connection, wanted.recipient)
            values = {"chain": wanted.chain, "wallet": wanted.wallet, "nonce": found.nonce, "now_ms": now_ms}
            values |= {"amount": wanted.amount_units, "recipient": wanted.recipient}
            await connection.execute(_TEXTS["insert_reservation"], _make_key_params(claim) | values)
        return found


async def refuse_own(connection: AsyncConnection, recipient: bytes) -> None:
    """Raises Unpayable if an address is or was a hot or cold wallet of ours."""
    own = await own_addresses.find(connection, recipient)
    if own is not None and own.is_wallet:
        raise Unpayable(f"the recipient is a {own} of the platform")


async def list_pending(connection: AsyncConnection, claim: Claim, chain: str) -> tuple[bytes | None, ...]:
    """What else a chain's hot wallet sends (see `chains.protocol.Payout`)."""
    cursor = await connection.execute(_TEXTS["list_pending"], {**_make_key_params(claim), "chain": chain})
    return tuple(None if raw is None else bytes(raw) for (raw,) in await cursor.fetchall())


async def release(connection: AsyncConnection, claim: Claim, now_ms: int) -> None:
    """Release the reservation of an order for which nothing is signed. Raises ClaimLost."""
    async with connection.transaction():
        await _write(connection, "hold_fence", claim, {})
        await _drop(connection, claim, now_ms)


async def give_up(
    connection: AsyncConnection,
    claim: Claim,
    cause: str,
    now_ms: int,
    *,
    signed_no: int,
    chain: str,
    wallet_fault: str | None = None,
) -> None:
    """Commit that the order can never be paid. The proof covers its `signed_no` signed transfers.

    Nothing can be signed for it from then on. With `wallet_fault` the same commit freezes the hot wallet.
    Raises ClaimLost, also when more than `signed_no` transfers are stored: the proof is void then.
    """
    parameters = {"cause": cause, "now_ms": now_ms, "signed_no": signed_no}
    async with connection.transaction():
        await _write(connection, "give_up", claim, parameters)
        if signed_no:
            await end(connection, claim.merchant_id, claim.order_id)
        else:
            await _drop(connection, claim, now_ms)
        if wallet_fault is not None:
            await stops.freeze_wallet(connection, chain, wallet_fault, now_ms)


async def end(connection: AsyncConnection, merchant_id: int, order_id: int) -> bool:
    """Note that the order's money has left the wallet, or never will. False if that is noted already.

    It is a fact, so it needs no claim.
    """
    key = {"merchant_id": merchant_id, "order_id": order_id}
    return bool((await connection.execute(_TEXTS["end_reservation"], key)).rowcount)


async def drop_closed(connection: AsyncConnection, merchant_id: int, order_id: int) -> bool:
    """Release what is reserved, without a nonce, for a closed payout of which nothing is signed.

    False if there is nothing.
    """
    values = {"merchant_id": merchant_id, "order_id": order_id}
    return bool((await connection.execute(_TEXTS["drop_closed"], values)).rowcount)


async def freeze(
    connection: AsyncConnection, claim: Claim, cause: str, now_ms: int, *, freezes_wallet: str | None
) -> None:
    """Freeze the order, and the hot wallet of `freezes_wallet`, until an operator thaws them.

    Raises ClaimLost.
    """
    parameters = {**_make_key_params(claim), "cause": cause, "now_ms": now_ms}
    async with connection.transaction():
        cursor = await connection.execute(_TEXTS["freeze_order"], parameters)
        row = await cursor.fetchone()
        if row is None:
            raise ClaimLost(f"order {claim.order_id}: fence {claim.fence} has been passed")
        if row == (0,):
            await _drop(connection, claim, now_ms)
        if freezes_wallet is not None:
            await stops.freeze_wallet(connection, freezes_wallet, cause, now_ms)


async def release_idle(connection: AsyncConnection, chain: str, wallet: bytes, before_ms: int) -> None:
    """Release reservations with nonces of orders whose payers died or stopped before signing anything."""
    parameters = {"chain": chain, "wallet": wallet, "before_ms": before_ms}
    async with connection.transaction():
        rows = await (await connection.execute(_TEXTS["drop_idle"], parameters)).fetchall()
        # Nobody has used them since they were reserved, at the latest at that moment.
        await nonces.free(connection, chain, wallet, Purpose.PAYOUT, [nonce for (nonce,) in rows], before_ms)


async def _drop(connection: AsyncConnection, claim: Claim, now_ms: int) -> None:
    """Delete the reservation of an order for which nothing is signed, and free its nonce."""
    cursor = await connection.execute(_TEXTS["drop_reservation"], _make_key_params(claim))
    for chain, wallet, nonce in await cursor.fetchall():
        if nonce is not None:
            await nonces.free(connection, chain, wallet, Purpose.PAYOUT, [nonce], now_ms)


def _make_key_params(claim: Claim) -> dict[str, object]:
    return {"merchant_id": claim.merchant_id, "order_id": claim.order_id, "fence": claim.fence}


async def _write(connection: AsyncConnection, name: str, claim: Claim, parameters: dict[str, object]) -> None:
    cursor = await connection.execute(_TEXTS[name], {**_make_key_params(claim), **parameters})
    if cursor.rowcount != 1:
        raise ClaimLost(f"order {claim.order_id}: fence {claim.fence} has been passed")
