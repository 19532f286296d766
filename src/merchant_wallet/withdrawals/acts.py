"""What people do about payouts: stop a chain, resume it, and resume a frozen order.

Rules: a change and its entry in the audit log are one transaction, whichever door it comes from. That
resuming a chain needs two people is in `two_person_changes`.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author, Facts, list_of_subject
from merchant_wallet.hot_wallet import stops
from merchant_wallet.withdrawals import payouts

Connection = AsyncConnection[Any]

FREEZE: Final = "wallet.freeze"
THAW: Final = "wallet.thaw"
THAW_ORDER: Final = "withdrawal.thaw"
_SUBJECT: Final = "wallet "


class Resumption(msgspec.Struct, frozen=True, gc=False):
    """Who resumed an order and when, and how it was frozen."""

    at_ms: int
    actor: str
    cause: str | None
    frozen_ms: int | None


def format_subject(chain: str) -> str:
    """The name of a chain's payouts in proposals and in the audit log."""
    return f"{_SUBJECT}{chain}"


def read_chain(subject: str) -> str:
    """The chain of a subject."""
    return subject.removeprefix(_SUBJECT)


def describe_resumed() -> Facts:
    """The facts of a chain that nothing stops. Pure."""
    return {"stoppedBy": None}


async def stop_chain(conn: Connection, author: Author, chain: str, reason: str) -> bool:
    """Stop new payouts of a chain. False if this person had stopped it. Then nothing is recorded."""
    return bool(await stop_chains(conn, author, [chain], reason))


async def stop_chains(conn: Connection, author: Author, chains: Iterable[str], reason: str) -> list[str]:
    """Stop new payouts of chains. Returns which: the others had been stopped by this person.

    All stops come before the first entry: a stop may wait for a transaction that waits for the log.
    """
    async with conn.transaction():
        stopped = [
            chain
            for chain in chains
            if await stops.stop_payouts(conn, chain, author.actor, reason, author.at_ms)
        ]
        for chain in stopped:
            await author.record(conn, FREEZE, format_subject(chain), after={"reason": reason})
    return stopped


async def resume_chain(conn: Connection, author: Author, chain: str, stopped: Facts) -> None:
    """Remove the stops and the freeze that `stops.read_stopped` returned in this transaction.

    Raises ChangeRefused.
    """
    async with conn.transaction():
        await stops.resume_payouts(conn, chain, stopped)
        after = describe_resumed()
        await author.record(conn, THAW, format_subject(chain), before=stopped, after=after)


async def thaw_order(home: Connection, author: Author, merchant_id: int, order_id: int) -> bool:
    """Resume a frozen order's payout. False if it was not frozen. Then nothing is recorded.

    Afterwards the caller tells the merchant's cell, with `book.frozen_orders`.
    """
    async with home.transaction():
        thawed = await payouts.thaw(home, merchant_id, order_id)
        if thawed is None:
            return False
        before = {"frozen": True, "cause": thawed.cause, "frozenMs": thawed.frozen_ms}
        subject = _format_order(order_id)
        await author.record(home, THAW_ORDER, subject, merchant_id, before=before, after={"frozen": False})
    return True


async def list_resumptions(home: Connection, merchant_id: int, order_id: int) -> list[Resumption]:
    """How often an order was frozen and resumed, newest first."""
    entries = await list_of_subject(home, merchant_id, THAW_ORDER, _format_order(order_id))
    facts = [entry.before or {} for entry in entries]
    return [
        Resumption(entry.at_ms, entry.actor, before.get("cause"), before.get("frozenMs"))
        for entry, before in zip(entries, facts, strict=True)
    ]


def _format_order(order_id: int) -> str:
    return f"order {order_id}"
