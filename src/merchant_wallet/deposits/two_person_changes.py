"""Crediting a held deposit: one person proposes it, another accepts. Then a worker carries it out.

Rules:
- Accepting asks for the act, in the same transaction and by who accepts. The deposit is in its cell, where
  the worker looks again whether it is held.
- Two people decide about what they saw: its block, its amount and why it is held. The worker changes nothing
  if one of these is another by then.
- Not to credit it needs one person: nothing moves.
"""

from collections.abc import Mapping
from typing import Any, Final

from merchant_wallet.approvals.acts import asked
from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.deposits.acts import RELEASE, RELEASED
from merchant_wallet.deposits.deposit_store import SeenDeposit

UNDER_WAY: Final = "A worker was asked to release it already. Look at what came of that."
_PLACE: Final = ("chain", "txHash", "logIndex")
_SEEN: Final = ("amount", "block", "cause")


def describe_released(chain: str, tx_hash: str, log_index: int, amount_units: int) -> Mapping[str, Any]:
    """The proposal's `after`. Pure."""
    return {
        "status": RELEASED,
        "amount": format_units(amount_units),
        "chain": chain,
        "txHash": tx_hash,
        "logIndex": log_index,
    }


def make_arguments(before: Facts, after: Facts) -> dict[str, Any]:
    """The arguments of the act: which deposit, and what was seen of it. Pure."""
    facts = {**before, **after}
    return {name: facts[name] for name in (*_PLACE, *_SEEN) if name in facts}


def read_seen(arguments: Facts) -> SeenDeposit:
    """What was seen of a deposit. Pure."""
    return SeenDeposit(int(arguments["block"]), parse_units(arguments["amount"]), arguments["cause"])


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to credit a held deposit."""
    return {RELEASE: Kind(RELEASE, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    # Its cell may be away. The worker compares it there.
    return change.before


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    arguments = {**make_arguments(change.before, change.after), asked.PROPOSAL_NO: change.proposal_no}
    found = await asked.ask(
        conn, RELEASE, change.subject, arguments, author=author, merchant_id=change.merchant_id
    )
    if not found.is_new:
        raise ChangeRefused(UNDER_WAY)
    return Applied()
