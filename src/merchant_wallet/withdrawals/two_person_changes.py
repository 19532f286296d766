"""Resuming a chain's payouts: one person proposes it, another accepts.

Rules:
- A proposal names every stop and the freeze of the hot wallet. If one was added, removed or renewed since,
  the proposal fails. Acceptance removes exactly those that it names.
- Evidence of a rollback is not included: it has a command of its own.
- Frozen orders stay frozen.
"""

from typing import Final

from merchant_wallet.approvals.changes import Applied, Connection, Facts, Kind, ProposedChange
from merchant_wallet.withdrawals.stops import read_stopped, resume_payouts

THAW: Final = "wallet.thaw"
_SUBJECT: Final = "wallet "


def format_subject(chain: str) -> str:
    """The name of a chain's payouts in proposals and in the audit log."""
    return f"{_SUBJECT}{chain}"


def describe_resumed() -> Facts:
    """The proposal's `after`. Pure."""
    return {"stoppedBy": None}


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to resume payouts."""
    return {THAW: Kind(THAW, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return await read_stopped(conn, change.subject.removeprefix(_SUBJECT))


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    await resume_payouts(conn, change.subject.removeprefix(_SUBJECT), change.before)
    return Applied()
