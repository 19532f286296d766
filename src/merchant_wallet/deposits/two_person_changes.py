"""Crediting a held deposit: one person proposes it, another accepts. Then a worker carries it out.

Rules:
- Accepting asks for the act, in the same transaction. It is in its cell, where the worker looks again
  whether it is held.
- Not to credit it needs one person: nothing moves.
"""

from collections.abc import Mapping
from typing import Any, Final

from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.approvals.changes import Applied, Connection, Facts, Kind, ProposedChange
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base.money import format_units

RELEASE: Final = "deposit.release"
HELD: Final[Facts] = {"status": "held"}
SOURCE: Final = "proposal"


def describe_released(chain: str, tx_hash: str, log_index: int, amount_units: int) -> Mapping[str, Any]:
    """The proposal's `after`. Pure."""
    return {
        "status": "pending",
        "amount": format_units(amount_units),
        "chain": chain,
        "txHash": tx_hash,
        "logIndex": log_index,
    }


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to credit a held deposit."""
    return {RELEASE: Kind(RELEASE, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    return HELD


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    arguments = {name: change.after[name] for name in ("chain", "txHash", "logIndex")}
    told = await asked.ask(
        conn,
        kinds.RELEASE_DEPOSIT,
        change.subject,
        {**arguments, "proposalNo": change.proposal_no},
        person=Person(change.proposed_by, SOURCE),
        at_ms=at_ms,
        reason=change.reason,
        merchant_id=change.merchant_id,
    )
    return Applied(after={**change.after, "actNo": told.act.act_no})
