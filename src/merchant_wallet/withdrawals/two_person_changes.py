"""Resuming a chain's payouts: one person proposes it, another accepts.

Rules:
- A proposal names every stop and the freeze of the hot wallet. If one was added, removed or renewed since,
  the proposal fails. Acceptance removes exactly those that it names.
- Evidence of a rollback is not included: it has a command of its own.
- Frozen orders stay frozen.
"""

from merchant_wallet.approvals.changes import Applied, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.hot_wallet.stops import read_stopped
from merchant_wallet.withdrawals import acts
from merchant_wallet.withdrawals.acts import THAW, read_chain


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to resume payouts."""
    return {THAW: Kind(THAW, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return await read_stopped(conn, read_chain(change.subject))


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    await acts.resume_chain(conn, author, read_chain(change.subject), change.before)
    return Applied()
