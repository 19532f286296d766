"""What people do about payouts: stop a chain, resume it, and resume a frozen order.

Rules: a change and its entry in the audit log are one transaction, whichever door it comes from. That
resuming a chain needs two people is in `two_person_changes`.
"""

from collections.abc import Iterable
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author, Facts
from merchant_wallet.withdrawals import payouts, stops

Connection = AsyncConnection[Any]

FREEZE: Final = "wallet.freeze"
THAW: Final = "wallet.thaw"
THAW_ORDER: Final = "withdrawal.thaw"
_SUBJECT: Final = "wallet "


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
        if not await payouts.thaw(home, merchant_id, order_id):
            return False
        before, after = {"frozen": True}, {"frozen": False}
        subject = f"order {order_id}"
        await author.record(home, THAW_ORDER, subject, merchant_id, before=before, after=after)
    return True
