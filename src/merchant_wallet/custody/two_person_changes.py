"""Recording USDT that somebody moved into custody or out of it: one person proposes it, another accepts.

Rules: such a record explains a difference of reconciliation away, so it needs two people on the console. The
same movement is recorded once. No book changes.
"""

from typing import Any, Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.custody import treasury

RECORD: Final = "treasury.record"
UNRECORDED: Final[Facts] = {"recorded": False}
REPEATED: Final = "The same movement is recorded already."


def describe_record(chain: str, direction: str, amount_units: int, tx_hash: str) -> dict[str, Any]:
    """The proposal's `after`. Pure."""
    return {
        "recorded": True,
        "chain": chain,
        "direction": direction,
        "amount": format_units(amount_units),
        "txHash": tx_hash,
    }


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to record a movement."""
    return {RECORD: Kind(RECORD, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return UNRECORDED


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    number = await record(conn, change.after, change.reason, change.proposed_by, at_ms)
    if number is None:
        raise ChangeRefused(REPEATED)
    return Applied(after={**change.after, "no": number})


async def record(conn: Connection, after: Facts, reason: str, actor: str, at_ms: int) -> int | None:
    """Store the movement. None if it is stored already."""
    return await treasury.record_treasury(
        conn,
        after["chain"],
        after["direction"],
        parse_units(after["amount"]),
        tx_hash=after["txHash"],
        reason=reason,
        actor=actor,
        now_ms=at_ms,
    )
