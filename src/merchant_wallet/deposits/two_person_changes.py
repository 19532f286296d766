"""Crediting a held deposit: one person proposes it, another accepts. Then a worker carries it out.

Rules:
- Accepting asks for the act, in the same transaction. It is in its cell, where the worker looks again
  whether it is held.
- Two people decide about what they saw: its block, its amount and why it is held. The worker changes nothing
  if one of these is another by then.
- Not to credit it needs one person: nothing moves.
"""

from collections.abc import Mapping
from typing import Any, Final

from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.approvals.changes import Applied, Connection, Facts, Kind, ProposedChange
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.deposits.deposit_store import SeenDeposit

RELEASE: Final = "deposit.release"
SOURCE: Final = "proposal"
_PLACE: Final = ("chain", "txHash", "logIndex")
_SEEN: Final = ("amount", "block", "cause")


def describe_held(block: int, cause: str | None) -> Facts:
    """The proposal's `before`. Pure."""
    return {"status": "held", "block": block, "cause": cause}


def describe_released(chain: str, tx_hash: str, log_index: int, amount_units: int) -> Mapping[str, Any]:
    """The proposal's `after`. Pure."""
    return {
        "status": "pending",
        "amount": format_units(amount_units),
        "chain": chain,
        "txHash": tx_hash,
        "logIndex": log_index,
    }


def make_arguments(before: Facts, after: Facts) -> dict[str, Any]:
    """The arguments of the act: which deposit, and what was seen of it. Pure."""
    facts = {**before, **after}
    return {name: facts[name] for name in (*_PLACE, *_SEEN) if name in facts}


def read_seen(arguments: Facts) -> SeenDeposit | None:
    """What was seen of a deposit. None for an act that an older program asked for. Pure."""
    if "block" not in arguments:
        return None
    return SeenDeposit(int(arguments["block"]), parse_units(arguments["amount"]), arguments["cause"])


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to credit a held deposit."""
    return {RELEASE: Kind(RELEASE, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    # Its cell may be away. The worker compares it there.
    return change.before


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    told = await asked.ask(
        conn,
        kinds.RELEASE_DEPOSIT,
        change.subject,
        {**make_arguments(change.before, change.after), "proposalNo": change.proposal_no},
        person=Person(change.proposed_by, SOURCE),
        at_ms=at_ms,
        reason=change.reason,
        merchant_id=change.merchant_id,
    )
    return Applied(after={**change.after, "actNo": told.act.act_no})
