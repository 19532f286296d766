"""Resuming a chain's payouts: one person proposes it, another accepts.

Rules:
- A proposal names every stop and the freeze of the hot wallet. If one was added, removed or renewed since,
  the proposal fails. Acceptance removes exactly those that it names.
- Evidence of a rollback is not included: it has a command of its own.
- Frozen orders stay frozen.
"""

from collections.abc import Sequence
from typing import Final

from merchant_wallet.approvals.changes import (
    STALE,
    Applied,
    ChangeRefused,
    Connection,
    Facts,
    Kind,
    ProposedChange,
)
from merchant_wallet.withdrawals.hot_wallet_store import TEXTS, thaw_wallet
from merchant_wallet.withdrawals.stops import Stop, list_stops

THAW: Final = "wallet.thaw"
_SUBJECT: Final = "wallet "


def name_subject(chain: str) -> str:
    """The name of a chain's payouts in proposals and in the audit log."""
    return f"{_SUBJECT}{chain}"


async def read_stopped(conn: Connection, chain: str) -> Facts:
    """What stops a chain's payouts, as a proposal's `before`. Locks the wallet's row against a freeze.

    `stoppedBy` is for people. It is None if nothing stops them.
    """
    cursor = await conn.execute(TEXTS["lock_frozen"], {"chain": chain})
    frozen_cause, frozen_ms = await cursor.fetchone() or (None, None)
    stops = [stop for stop in await list_stops(conn) if stop.chain == chain]
    return {
        "stoppedBy": _tell(stops, frozen_cause),
        "stops": [{"actor": stop.actor, "cause": stop.cause, "sinceMs": stop.since_ms} for stop in stops],
        "frozenMs": frozen_ms,
    }


def describe_resumed() -> Facts:
    """The proposal's `after`. Pure."""
    return {"stoppedBy": None}


async def resume(conn: Connection, chain: str, stopped: Facts) -> None:
    """Remove the stops and the freeze that `read_stopped` returned in this transaction.

    Raises ChangeRefused if somebody else removed one of them at the same moment.
    """
    for stop in stopped["stops"]:
        values = {"chain": chain, "actor": stop["actor"], "since_ms": stop["sinceMs"]}
        if (await conn.execute(TEXTS["take_back_stop"], values)).rowcount != 1:
            raise ChangeRefused(STALE)
    if stopped["frozenMs"] is not None:
        await thaw_wallet(conn, chain)


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to resume payouts."""
    return {THAW: Kind(THAW, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return await read_stopped(conn, change.subject.removeprefix(_SUBJECT))


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    await resume(conn, change.subject.removeprefix(_SUBJECT), change.before)
    return Applied()


def _tell(stops: Sequence[Stop], frozen_cause: str | None) -> str | None:
    told = [f"{stop.actor}: {stop.cause}" for stop in stops]
    if frozen_cause is not None:
        told.append(f"frozen hot wallet: {frozen_cause}")
    return "; ".join(told) or None
